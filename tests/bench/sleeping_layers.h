#pragma once

#include <chrono>

namespace ptrain::bench {

// How long a block of a program that is linked with sleeping_layers.cc sleeps in place of its
// forward, of the gradient of its input, and of that of its weights. Embedding and head take no
// time.
inline constexpr std::chrono::milliseconds kPiece{8};

}  // namespace ptrain::bench
