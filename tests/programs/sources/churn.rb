# SPDX-License-Identifier: BSD-2-Clause
#
#   ruby churn.rb ROUNDS
#
# Objects that live for a round, and some that stay.  Each round reads back what it
# wrote, and the last line depends on all of it.
rounds = ARGV[0].to_i
chance = Random.new(20)
kept = {}
sum = 0

rounds.times do |n|
  brief = Array.new(30_000) { |i| [i, "n#{chance.rand(1_000_000)}", { at: i, round: n }] }
  names = brief.to_h { |i, name, _| [name, i] }
  brief.each do |i, name, where|
    abort "round #{n}: object #{i}" unless where[:at] == i && where[:round] == n
    abort "round #{n}: name #{i}" unless brief[names[name]][1] == name
  end
  kept[n] = Array.new(2_000) { |i| "#{n} #{i}" }
  sum = (sum * 31 + names.keys.join.sum(32)) % 4_294_967_296
end
kept.each { |n, list| abort "kept #{n}" unless list[7] == "#{n} 7" }
puts "ruby: whole, #{rounds} rounds, #{sum}"
