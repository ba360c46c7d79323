#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Writes the synthetic descriptions again; see README.md.  Wants hwloc's tools.
set -eu
cd "$(dirname "$0")"

# export NAME DESCRIPTION [OPTION...]: an XML file without the changing parts.
export_xml() {
	name=$1
	description=$2
	shift 2
	lstopo-no-graphics --if synthetic -i "$description" "$@" --of xml |
		grep -v -e hwlocVersion -e ProcessName -e '<support ' >"$name"
}

# distances NAME NODES VALUE...: adds a latency table between the nodes.
distances() {
	name=$1
	nodes=$2
	shift 2
	{
		echo name=NUMALatency
		echo 5 # from the system, means latency
		echo "$nodes"
		i=0
		while [ "$i" -lt "$nodes" ]; do
			echo "NUMANode:$i"
			i=$((i + 1))
		done
		printf '%s\n' "$@"
	} >table.tmp
	hwloc-annotate "$name" table.xml.tmp root distances table.tmp
	grep -v -e hwlocVersion -e ProcessName -e '<support ' \
		table.xml.tmp >"$name"
	rm -f table.tmp table.xml.tmp
}

all96=0xffffffff,0xffffffff,0xffffffff

# Objects are in logical order (0, 2, 1), so the tables are as well.
export_xml memory-package.xml "Package:2 \
[NUMANode(memory=256GiB indexes=0,2,1,3)] [NUMANode(memory=248GiB)] PU:48" \
	--restrict nodeset=0x7 --restrict-flags 8
distances memory-package.xml 3 10 17 21 17 10 28 21 28 10

export_xml memory-machine.xml \
	"[NUMANode(memory=248GiB)] Package:2 [NUMANode(memory=256GiB)] PU:48"

export_xml memory-empty.xml \
	"Package:3 [NUMANode(memory=248GiB)] PU:48" --restrict $all96
distances memory-empty.xml 3 10 21 31 21 10 31 31 31 10

export_xml memory-dax.xml "Package:2 \
[NUMANode(memory=248GiB indexes=0,2,1,3)] [NUMANode(memory=256GiB)] PU:48"
for node in 0 2; do
	hwloc-annotate memory-dax.xml dax.tmp "NUMANode:$node" \
		info DAXDevice "dax$node.0"
	grep -v -e hwlocVersion -e ProcessName -e '<support ' \
		dax.tmp >memory-dax.xml
done
rm -f dax.tmp

export_xml restricted.xml \
	"Package:2 [NUMANode(memory=256GiB)] PU:48(indexes=2*48:1*2)"
sed -i -e '1,/allowed_cpuset/s/allowed_cpuset="[^"]*"/allowed_cpuset="0xfff"/' \
	-e '1,/allowed_nodeset/s/allowed_nodeset="[^"]*"/allowed_nodeset="0x1"/' \
	restricted.xml

export_xml no-memory.xml "Package:4 [NUMANode(memory=64GiB)] PU:4"
sed -i '/NUMANode.*os_index="[12]"/s/local_memory="[0-9]*"/local_memory="0"/' \
	no-memory.xml
distances no-memory.xml 4 10 16 20 20 16 10 20 20 20 20 10 16 20 20 16 10
