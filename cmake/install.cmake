# SPDX-License-Identifier: BSD-2-Clause
#
# What `cmake --install` gives.  Nothing of it holds an absolute path, so the
# tree can be moved and live under a path with spaces; only an absolute
# CMAKE_INSTALL_LIBDIR or _INCLUDEDIR pins it.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pcpalloc)

install(TARGETS pcpalloc EXPORT pcpallocTargets
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
	NAMELINK_COMPONENT Development)
install(TARGETS pcpalloc_static EXPORT pcpallocStaticTargets
	ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/pcpalloc ${PROJECT_BINARY_DIR}/include/pcpalloc
	DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
	FILES_MATCHING PATTERN "*.h")

# Two export files: the static library's needs its dependencies, and a user of
# the shared one should not have to install their development files.
install(EXPORT pcpallocTargets NAMESPACE pcpalloc::
	DESTINATION ${package_dir})
install(EXPORT pcpallocStaticTargets NAMESPACE pcpalloc::
	DESTINATION ${package_dir})
configure_package_config_file(cmake/pcpallocConfig.cmake.in
	${PROJECT_BINARY_DIR}/pcpallocConfig.cmake
	INSTALL_DESTINATION ${package_dir}
	NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(
	${PROJECT_BINARY_DIR}/pcpallocConfigVersion.cmake
	COMPATIBILITY SameMinorVersion)
install(FILES
	${PROJECT_BINARY_DIR}/pcpallocConfig.cmake
	${PROJECT_BINARY_DIR}/pcpallocConfigVersion.cmake
	DESTINATION ${package_dir})

# The prefix seen from the .pc file.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
	set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
	set(pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
	file(RELATIVE_PATH up "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
	string(REGEX REPLACE "/$" "" up "${up}")
	set(pc_prefix "\${pcfiledir}/${up}")
	set(pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
	set(pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
	set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
# The dependencies by their shared libraries, not by Requires.private: that
# would bring in hwloc's own private libraries, and Debian has no static
# libudev.
list(TRANSFORM pcpalloc_deps_LIBRARIES PREPEND "-l" OUTPUT_VARIABLE pc_private)
if(CMAKE_DL_LIBS)
	list(APPEND pc_private "-l${CMAKE_DL_LIBS}")
endif()
list(JOIN pc_private " " pc_private)
string(STRIP "${pc_private} ${CMAKE_THREAD_LIBS_INIT}" pc_private)
configure_file(pkgconfig/libpcpalloc.pc.in
	${PROJECT_BINARY_DIR}/libpcpalloc.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/libpcpalloc.pc
	DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
