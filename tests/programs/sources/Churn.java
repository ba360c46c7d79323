// SPDX-License-Identifier: BSD-2-Clause
//
//   java Churn ROUNDS
//
// A map that grows over the rounds, and objects that live for one.  Each round reads
// back what it wrote, and the last line depends on all of it.
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

public class Churn {
	static final Map<Integer, byte[]> kept = new HashMap<>();

	static byte[] filled(int number, int length) {
		byte[] bytes = new byte[length];

		for (int i = 0; i < length; i++)
			bytes[i] = (byte) (number + i);
		return bytes;
	}

	static void check(int number, byte[] bytes) {
		for (int i = 0; i < bytes.length; i += 61) {
			if (bytes[i] != (byte) (number + i))
				throw new IllegalStateException("number " + number + " at " + i);
		}
	}

	static long round(int round, Random random) {
		List<byte[]> brief = new ArrayList<>();
		long sum = 0;

		for (int i = 0; i < 1000; i++)
			brief.add(filled(i, 1 + random.nextInt(20000)));
		for (int i = 0; i < 1000; i++) {
			check(i, brief.get(i));
			sum += brief.get(i).length;
		}
		for (int i = 0; i < 300; i++) {
			int number = round * 300 + i;

			kept.put(number, filled(number, 1 + random.nextInt(16000)));
		}
		return sum;
	}

	public static void main(String[] arguments) {
		Random random = new Random(20);
		int rounds = Integer.parseInt(arguments[0]);
		long sum = 0;

		for (int i = 0; i < rounds; i++)
			sum = sum * 31 + round(i, random);
		for (Map.Entry<Integer, byte[]> each : kept.entrySet()) {
			check(each.getKey(), each.getValue());
			sum = sum * 31 + each.getValue().length;
		}
		System.out.println("java: whole, " + rounds + " rounds, " + sum);
	}
}
