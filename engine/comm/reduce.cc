#include "engine/comm/reduce.h"

#include <algorithm>
#include <array>
#include <string>

#include "engine/base/engine_error.h"

namespace ptrain::comm {
namespace {

constexpr std::int64_t kBlock = 2048;  // elements; a block of sums stays in the first-level cache

template <class T, class Op>
void reduce_blocks(std::span<const std::byte* const> inputs, std::int64_t count, T* output, Op op) {
  std::array<T, kBlock> sums;
  for (std::int64_t begin = 0; begin < count; begin += kBlock) {
    const std::int64_t length = std::min(kBlock, count - begin);
    std::copy_n(reinterpret_cast<const T*>(inputs[0]) + begin, length, sums.data());
    for (const std::byte* input : inputs.subspan(1)) {
      const T* values = reinterpret_cast<const T*>(input) + begin;
      for (std::int64_t i = 0; i < length; ++i)
        sums[static_cast<std::size_t>(i)] = op(sums[static_cast<std::size_t>(i)], values[i]);
    }
    std::copy_n(sums.data(), length, output + begin);
  }
}

template <class T>
void reduce_as(ReduceOp op, std::span<const std::byte* const> inputs, std::int64_t count,
               std::byte* output) {
  T* to = reinterpret_cast<T*>(output);
  if (op == ReduceOp::kSum)
    reduce_blocks(inputs, count, to, [](T a, T b) { return static_cast<T>(a + b); });
  else
    reduce_blocks(inputs, count, to, [](T a, T b) { return b > a || b != b ? b : a; });
}

}  // namespace

void reduce_in_order(DType dtype, ReduceOp op, std::span<const std::byte* const> inputs,
                     std::int64_t count, std::byte* output) {
  PT_CHECK(!inputs.empty());
  switch (dtype) {
    case DType::kFloat32:
      return reduce_as<float>(op, inputs, count, output);
    case DType::kFloat64:
      return reduce_as<double>(op, inputs, count, output);
    case DType::kInt32:
      return reduce_as<std::int32_t>(op, inputs, count, output);
    case DType::kInt64:
      return reduce_as<std::int64_t>(op, inputs, count, output);
    case DType::kBFloat16:
    case DType::kUInt8:
      break;
  }
  throw EngineError(ExitCode::kBug, "a reduction over ranks in " + std::string(name_of(dtype)) +
                                        ": sums are made in float32, float64, int32 or int64 only");
}

}  // namespace ptrain::comm
