<?php
// SPDX-License-Identifier: BSD-2-Clause
//
//   php churn.php ROUNDS
//
// Large arrays and strings that live for a round, as a request's do.  Each round reads
// back what it wrote, and the last line depends on all of it.
mt_srand(20);
$rounds = (int)$argv[1];
$sum = 0;

for ($round = 0; $round < $rounds; $round++) {
	$numbers = [];
	for ($i = 0; $i < 150000; $i++) {
		$numbers[] = mt_rand();
	}
	$doubled = array_map(fn($n) => $n * 2, $numbers);
	$words = [];
	foreach ($numbers as $i => $n) {
		if ($i % 10 == 0) {
			$words["w$n"] = str_repeat(chr(97 + $n % 26), $n % 200);
		}
	}
	$text = json_encode($words);
	if (json_decode($text, true) !== $words) {
		echo "round $round: json isn't what it was\n";
		exit(1);
	}
	for ($i = 0; $i < count($numbers); $i += 1000) {
		if ($doubled[$i] !== $numbers[$i] * 2) {
			echo "round $round: number $i\n";
			exit(1);
		}
	}
	$sum = crc32("$sum $text " . array_sum($doubled));
}
echo "php: whole, $rounds rounds, $sum\n";
