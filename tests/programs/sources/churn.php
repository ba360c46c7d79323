<?php
// SPDX-License-Identifier: BSD-2-Clause
//
//   php churn.php ROUNDS
//
// Large arrays and strings that live for some tens of milliseconds, as in a page that
// reads a table, changes it and writes it out.  Each round reads back what it wrote, and
// the last line depends on all of it.

function fail($text)
{
	echo "$text\n";
	exit(1);
}

function numbers_check($round, $numbers)
{
	$last = count($numbers) - 1;
	$back = array_reverse($numbers);
	$twice = array_merge($back, $numbers);
	for ($i = 0; $i <= $last; $i += 100) {
		if ($back[$last - $i] !== $i + $round || $twice[$last + 1 + $i] !== $i + $round) {
			fail("round $round: number $i");
		}
	}
	return array_sum($twice);
}

function text_check($round, $numbers)
{
	$text = implode("\n", array_slice($numbers, 0, 60000));
	$lines = explode("\n", $text);
	for ($i = 0; $i < count($lines); $i += 100) {
		if ($lines[$i] !== (string)($i + $round)) {
			fail("round $round: line $i");
		}
	}
	return crc32(strrev(str_repeat($text, 8)));
}

$rounds = (int)$argv[1];
$sum = 0;
for ($round = 0; $round < $rounds; $round++) {
	$numbers = range($round, $round + 300000);
	$sum = crc32("$sum " . numbers_check($round, $numbers) . " " . text_check($round, $numbers));
}
echo "php: whole, $rounds rounds, $sum\n";
