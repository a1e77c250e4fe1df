#include <gtest/gtest.h>

#include "engine/comm/nccl.h"

namespace ptrain::comm {
namespace {

TEST(NoNccl, TensorsTravelAsHostMemoryDoes) {
  auto peers = make_single();
  const Communicator* own = peers.get();
  const auto tensors = for_tensors(std::move(peers));
  EXPECT_EQ(tensors.get(), own);
  tensors->close();
  EXPECT_EQ(for_tensors(nullptr), nullptr);
}

}  // namespace
}  // namespace ptrain::comm
