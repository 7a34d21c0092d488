# A room is one folder under src/. Its sources can include headers of the rooms that it links to, and
# no others: the headers of each room are reachable only through an include directory of its own, which
# contains a single link to the folder. An include that DESIGN §5 does not permit fails to compile.

# sluice_precompile(<target> source ...): the compiler parses once which headers at least three of the sources include. Headers are half of
# the time of a compilation. Below six sources it would take longer. It is not for code that GCC optimizes: there GCC 12 reports false
# positives of -Warray-bounds in precompiled headers of the standard library. A source must still include what it uses.
function(sluice_precompile target)
  list(LENGTH ARGN count)
  if(count LESS 6)
    return()
  endif()
  set(once)
  set(twice)
  set(often)
  foreach(source IN LISTS ARGN)
    file(STRINGS ${source} lines REGEX "^#include [<\"]")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include ([<\"][^>\"]*[>\"]).*" "\\1" header "${line}")
      if(header IN_LIST often)
        continue()
      elseif(header IN_LIST twice)
        list(APPEND often ${header})
      elseif(header IN_LIST once)
        list(APPEND twice ${header})
      else()
        list(APPEND once ${header})
      endif()
    endforeach()
  endforeach()
  if(often)
    # In a fixed order, so that an added source does not change the precompiled header.
    list(SORT often)
    # ccache finds a precompiled header by its preprocessed text. Two lists of headers can have the same text, if one header includes the
    # rest, but clang accepts only the precompiled header of the list itself. So the text names its list.
    string(SHA1 identity "${often}")
    set(named ${CMAKE_CURRENT_BINARY_DIR}/precompiled/${identity}.h)
    file(CONFIGURE OUTPUT ${named} CONTENT "#pragma once\nstruct PrecompiledHeaders${identity};\n")
    target_precompile_headers(${target} PRIVATE ${often} ${named})
    # ccache caches nothing without -fpch-preprocess (GCC), or where the precompiled header contains a time (clang).
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -fpch-preprocess)
    else()
      target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
    endif()
  endif()
endfunction()

# sluice_room(<name> [PARTS folder ...] [ROOMS a b ...] [TEST_ROOMS c ...] [PACKAGES pkg::target ...])
# Compiles every *.cc of the folder but *_test.cc, *_bench.cc and main.cc into a static library. PARTS are folders
# in it that belong to the same room. TEST_ROOMS are rooms that only its tests may use.
function(sluice_room name)
  cmake_parse_arguments(ARG "" "" "PARTS;ROOMS;TEST_ROOMS;PACKAGES" ${ARGN})
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
    if(SLUICE_SANITIZE)
      sluice_precompile(sluice_${name} ${sources})
    endif()
  else()
    add_library(sluice_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(sluice_${name} ${scope} ${view})
  list(TRANSFORM ARG_ROOMS PREPEND sluice_)
  target_link_libraries(sluice_${name} ${scope} ${ARG_ROOMS} ${ARG_PACKAGES})

  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  if(SLUICE_TESTS AND tests)
    sluice_test(${name}_test SOURCES ${tests} ROOMS ${name} ${ARG_TEST_ROOMS})
  endif()
endfunction()

# Every GoogleTest program. The fuzzers' replays and the benchmarks are not part of it.
add_custom_target(unit_tests)

# sluice_test(<name> SOURCES ... ROOMS ...): one GoogleTest program, known to ctest under the label unit. Its rooms are compiled as they
# ship. The sources of the tests are more than half of a cold build, so they are not optimized.
function(sluice_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_compile_options(${name} PRIVATE "SHELL:-O0 -U_FORTIFY_SOURCE")
  sluice_precompile(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_ROOMS PREPEND sluice_)
  target_link_libraries(${name} PRIVATE ${ARG_ROOMS} GTest::gtest GTest::gmock GTest::gtest_main)
  add_dependencies(unit_tests ${name})
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 120 LABELS unit)
endfunction()
