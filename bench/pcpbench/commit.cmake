# SPDX-License-Identifier: BSD-2-Clause
#
# cmake -DROOT=TREE -DOUT=HEADER -P commit.cmake
#
# Writes the commit of the tree into a header, with -dirty where tracked files
# differ from it, and "unknown" where there is no git or the tree is no repository
# of its own (a tarball, perhaps unpacked inside of one).  A header that is right
# already isn't touched, so that nothing is compiled for it.
set(commit unknown)
find_program(git NAMES git)
if(git)
	execute_process(COMMAND ${git} -C ${ROOT} rev-parse --show-toplevel
		OUTPUT_VARIABLE top RESULT_VARIABLE failed
		OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	if(NOT failed)
		file(REAL_PATH "${top}" top)
		file(REAL_PATH "${ROOT}" root)
		if(NOT top STREQUAL root)
			set(failed TRUE)
		endif()
	endif()
	if(NOT failed)
		execute_process(
			COMMAND ${git} -C ${ROOT} rev-parse --short=12 HEAD
			OUTPUT_VARIABLE head RESULT_VARIABLE failed
			OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
	endif()
	if(NOT failed)
		set(commit ${head})
		execute_process(COMMAND ${git} -C ${ROOT} --no-optional-locks
			status --porcelain --untracked-files=no
			OUTPUT_VARIABLE changes ERROR_QUIET)
		if(changes)
			string(APPEND commit -dirty)
		endif()
	endif()
endif()
set(text "/* Made by commit.cmake. */\n#define BENCH_COMMIT \"${commit}\"\n")
set(before)
if(EXISTS ${OUT})
	file(READ ${OUT} before)
endif()
if(NOT before STREQUAL text)
	file(WRITE ${OUT} "${text}")
endif()
