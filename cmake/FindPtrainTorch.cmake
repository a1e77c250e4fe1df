# Finds libtorch's CPU half without its own CMake package, which probes GPUs and costs seconds.
# PTRAIN_TORCH_ROOT: the folder that holds include/ and lib/ of torch 2.11.0 (default: the wheel in .venv).
# Gives the target torch::cpu; its headers are SYSTEM.
file(GLOB _ptrain_torch_wheel ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
set(PTRAIN_TORCH_ROOT "${_ptrain_torch_wheel}" CACHE PATH "Folder with include/ and lib/ of torch 2.11.0")
set(_version_header ${PTRAIN_TORCH_ROOT}/include/torch/headeronly/version.h)
if(EXISTS ${_version_header})
  file(STRINGS ${_version_header} _lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9;]" "" PtrainTorch_VERSION "${_lines}")
  string(REPLACE ";" "." PtrainTorch_VERSION "${PtrainTorch_VERSION}")
endif()
find_library(PTRAIN_TORCH_CPU torch_cpu PATHS ${PTRAIN_TORCH_ROOT}/lib NO_DEFAULT_PATH)
find_library(PTRAIN_TORCH_C10 c10 PATHS ${PTRAIN_TORCH_ROOT}/lib NO_DEFAULT_PATH)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PtrainTorch
  REQUIRED_VARS PTRAIN_TORCH_CPU PTRAIN_TORCH_C10 VERSION_VAR PtrainTorch_VERSION
  REASON_FAILURE_MESSAGE "run scripts/setup, or give -DPTRAIN_TORCH_ROOT=<folder of torch 2.11.0>")
if(NOT PtrainTorch_VERSION VERSION_EQUAL 2.11.0)
  message(FATAL_ERROR "ptrain is built against torch 2.11.0, but ${PTRAIN_TORCH_ROOT} holds "
    "'${PtrainTorch_VERSION}': run scripts/setup, or point PTRAIN_TORCH_ROOT at torch 2.11.0")
endif()

if(PtrainTorch_FOUND AND NOT TARGET torch::cpu)
  add_library(torch::c10 SHARED IMPORTED)
  set_target_properties(torch::c10 PROPERTIES IMPORTED_LOCATION ${PTRAIN_TORCH_C10}
    INTERFACE_INCLUDE_DIRECTORIES ${PTRAIN_TORCH_ROOT}/include
    INTERFACE_COMPILE_DEFINITIONS AT_PER_OPERATOR_HEADERS)
  add_library(torch::cpu SHARED IMPORTED)
  set_target_properties(torch::cpu PROPERTIES IMPORTED_LOCATION ${PTRAIN_TORCH_CPU})
  target_link_libraries(torch::cpu INTERFACE torch::c10)
endif()
