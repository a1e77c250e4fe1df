#pragma once

#include <gtest/gtest.h>

#include "engine/base/engine_error.h"
#include "engine/kernels/expert_rows.h"

namespace ptrain::test {

// Whether the kernels that a test is linked with can run experts; those for GPUs refuse.
inline bool has_expert_kernels() {
  std::int32_t expert = 0;
  try {
    kernels::sort_by_expert(contiguous(&expert, DType::kInt32, 1, 1), 1);
  } catch (const EngineError&) {
    return false;
  }
  return true;
}

// Tests that need them.
template <class Base>
class WithExpertKernels : public Base {
 protected:
  void SetUp() override {
    if (!has_expert_kernels()) GTEST_SKIP() << "not on these kernels";
  }
};

}  // namespace ptrain::test
