# PTRAIN_BUILDS_CUDA: whether the engine's CUDA module is built. PTRAIN_CUDA asks for it; a build with
# tests makes it too wherever a toolkit is found, so that it keeps compiling. Gives CUDA::cudart,
# CUDA::cublas and PTRAIN_NCCL.
set(PTRAIN_CUDA_ARCHITECTURES "80;90" CACHE STRING "GPU architectures to compile kernels for")
set(PTRAIN_BUILDS_CUDA OFF)
# The sanitizers and libFuzzer do not look into what nvcc compiles.
if(PTRAIN_TESTS AND CMAKE_BUILD_TYPE STREQUAL Release AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  find_package(CUDAToolkit 13 QUIET)
endif()
if(PTRAIN_CUDA AND NOT CUDAToolkit_FOUND)
  find_package(CUDAToolkit 13 REQUIRED)
endif()
if(CUDAToolkit_FOUND)
  find_library(PTRAIN_NCCL nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
  if(PTRAIN_NCCL AND CUDAToolkit_NVCC_EXECUTABLE)
    set(PTRAIN_BUILDS_CUDA ON)
  elseif(PTRAIN_CUDA)
    message(FATAL_ERROR "PTRAIN_CUDA needs nvcc and NCCL beside the CUDA toolkit: install them, or "
      "give -DPTRAIN_NCCL=<libnccl.so>")
  endif()
endif()

if(PTRAIN_BUILDS_CUDA)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  set(CMAKE_CUDA_ARCHITECTURES ${PTRAIN_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc has C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
endif()
