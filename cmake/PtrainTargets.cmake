# How the targets of this project are made: warnings, include root, names.
add_library(ptrain_options INTERFACE)
target_include_directories(ptrain_options INTERFACE ${PROJECT_SOURCE_DIR})
set(warnings -Wall -Wextra -Wconversion -Wshadow -Werror)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # A loop marked for vectors stays a loop without optimisation or with sanitizers: no reason to stop.
  list(APPEND warnings -Wno-pass-failed)
endif()
# relaxed-constexpr: kernels call constexpr functions that were not written for them, of BFloat16.
target_compile_options(ptrain_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${warnings}>"
  "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings;--expt-relaxed-constexpr>")
find_program(PTRAIN_MOLD mold)
if(PTRAIN_MOLD)
  target_link_options(ptrain_options INTERFACE -fuse-ld=mold)
endif()

# ptrain_library(NAME SOURCES a.cc ... DEPENDS target ...): the static library of one second-level folder.
# With headers only, DEPENDS alone: an interface library.
function(ptrain_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC ptrain_options ${arg_DEPENDS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ptrain_options ${arg_DEPENDS})
  endif()
endfunction()

# ptrain_unit_test(NAME DEPENDS target ...): one test program of all tests/unit/NAME_*_test.cc.
function(ptrain_unit_test name)
  cmake_parse_arguments(arg "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/unit/${name}_*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(unit_${name} ${sources})
  target_link_libraries(unit_${name} PRIVATE ptrain_options ${name} ${arg_DEPENDS}
    GTest::gtest GTest::gtest_main rapidcheck)
  target_compile_options(unit_${name} PRIVATE -O1)  # compiles in three quarters of the time
  add_dependencies(unit_tests unit_${name})
  add_test(NAME unit_${name} COMMAND unit_${name})
  set_tests_properties(unit_${name} PROPERTIES LABELS unit
    ENVIRONMENT "OMP_NUM_THREADS=1;OMP_WAIT_POLICY=passive;PTRAIN_SOURCE_DIR=${PROJECT_SOURCE_DIR}")
endfunction()

# ptrain_kernel_twins(NAME [cpu|emulated|cuda TARGET]...): what is linked with the library NAME for
# each place where kernels can run. The program or module that is linked in the end chooses by its
# property PTRAIN_KERNELS (none: cpu); all else is the same objects. Targets of `cuda` need not exist
# without the CUDA module, nor those of `emulated` (in tests/cuda) without tests: nothing chooses them.
function(ptrain_kernel_twins name)
  set(choice $<TARGET_PROPERTY:PTRAIN_KERNELS>)
  while(ARGN)
    list(POP_FRONT ARGN place twin)
    if(place STREQUAL cpu)
      target_link_libraries(${name} INTERFACE $<$<NOT:$<BOOL:${choice}>>:${twin}>)
    else()
      target_link_libraries(${name} INTERFACE $<$<STREQUAL:${choice},${place}>:${twin}>)
    endif()
  endwhile()
endfunction()
