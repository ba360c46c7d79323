// SPDX-License-Identifier: BSD-2-Clause
//
//   node churn.js ROUNDS
//
// Objects, strings and large arrays that live for a round, and a map that grows.  Each round
// reads back what it wrote, and the last line depends on all of it.
'use strict';

const rounds = Number(process.argv[2]);
const kept = new Map();
let state = 20;
let sum = 0;

function random(below) {
	state = (Math.imul(state, 1103515245) + 12345) >>> 0;
	return (state >>> 8) % below;
}

function fail(text) {
	console.log(text);
	process.exit(1);
}

for (let round = 0; round < rounds; round++) {
	const brief = [];
	for (let i = 0; i < 10000; i++) {
		brief.push({ number: i, name: 'n' + random(1000000), list: [i, i + 1, i + 2] });
	}
	const text = JSON.stringify(brief);
	const again = JSON.parse(text);
	for (let i = 0; i < brief.length; i += 97) {
		if (again[i].name !== brief[i].name || again[i].list[2] !== i + 2) {
			fail(`round ${round}: object ${i}`);
		}
	}
	const numbers = Array.from({ length: 1000000 }, (_, i) => i + round / 2);
	const doubled = numbers.map((n) => n * 2);
	for (let i = 0; i < numbers.length; i += 1000) {
		if (doubled[i] !== 2 * i + round) {
			fail(`round ${round}: number ${i}`);
		}
	}
	for (let i = 0; i < 5000; i++) {
		kept.set(round * 5000 + i, { value: random(1000), more: [round, i] });
	}
	sum = (Math.imul(sum, 31) + text.length) >>> 0;
}
for (const [number, each] of kept) {
	if (each.more[0] * 5000 + each.more[1] !== number) {
		fail(`kept ${number}`);
	}
	sum = (Math.imul(sum, 31) + each.value) >>> 0;
}
console.log(`node: whole, ${rounds} rounds, ${sum}`);
