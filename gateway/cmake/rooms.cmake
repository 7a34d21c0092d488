# A room is one folder under src/. It can include headers of the rooms it links to and of no
# other: each room's headers are reachable only through an include directory of its own, which
# holds a single link to the folder. An arrow that DESIGN §5 doesn't draw fails to compile.

# sluice_room(<name> [PARTS folder ...] [ROOMS a b ...] [PACKAGES pkg::target ...])
# Compiles every *.cc of the folder but *_test.cc, *_bench.cc and main.cc into a static library. PARTS are folders
# in it that belong to the same room: a room with many files keeps what belongs together in one.
function(sluice_room name)
  cmake_parse_arguments(ARG "" "" "PARTS;ROOMS;PACKAGES" ${ARGN})
  list(TRANSFORM ARG_PARTS APPEND /*.cc OUTPUT_VARIABLE globs)
  file(GLOB sources CONFIGURE_DEPENDS *.cc ${globs})
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cc$|/main\\.cc$")
  set(view ${CMAKE_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${name} SYMBOLIC)
  if(sources)
    add_library(sluice_${name} STATIC ${sources})
    set(scope PUBLIC)
  else()
    add_library(sluice_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(sluice_${name} ${scope} ${view})
  list(TRANSFORM ARG_ROOMS PREPEND sluice_)
  target_link_libraries(sluice_${name} ${scope} ${ARG_ROOMS} ${ARG_PACKAGES})

  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(SLUICE_TESTS AND tests)
    sluice_test(${name}_test SOURCES ${tests} ROOMS ${name})
  endif()
endfunction()

# sluice_test(<name> SOURCES ... ROOMS ...): one GoogleTest program, each test known to ctest. The rooms in
# it are compiled as they ship; the tests' own files, more than half of a cold build, by what compiles fast.
function(sluice_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  if(SLUICE_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  elseif(CMAKE_BUILD_TYPE STREQUAL RelWithDebInfo)
    target_compile_options(${name} PRIVATE -O1 -g1)
  endif()
  list(TRANSFORM ARG_ROOMS PREPEND sluice_)
  target_link_libraries(${name} PRIVATE ${ARG_ROOMS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS unit)
endfunction()
