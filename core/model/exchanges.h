#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/architecture.h"

namespace ptrain::model {

// The ranks that an exchange is made with.
// kRows: those that hold tokens of the same rows, tp inside cp.
// kVocabulary: those that share a spread embedding or head (VocabularyPlace), of which only some
// hold tokens.
enum class ExchangeAxis { kTensor, kRing, kUlysses, kExperts, kRows, kVocabulary };
// kShift is under way while the segment behind it computes: the call's next exchange waits for it
// first. kArrival does that and nothing else.
enum class ExchangeKind { kAllGather, kReduceScatter, kAllReduce, kAllToAll, kShift, kArrival };
std::string_view to_string(ExchangeAxis axis);  // tp, ring, ulysses, ep, rows, vocabulary
std::string_view to_string(ExchangeKind kind);  // all_gather, reduce_scatter, ...
std::optional<ExchangeAxis> exchange_axis_named(std::string_view word);

// What is done with a layer. kEvaluate: a forward that keeps nothing, after which the head makes
// loss or logits at once.
enum class Call { kForward, kEvaluate, kRecompute, kRemake, kBackward };

// What a layer's call needs from other ranks between two of its segments.
struct ExchangeSpec {
  ExchangeKind kind = ExchangeKind::kAllGather;
  ExchangeAxis axis = ExchangeAxis::kTensor;
  // Of what all ranks of the axis hold together; all_to_all: of all that a rank gives, its own part
  // included; shift: of what it sends. A token of those that the micro-batch has on a cp rank.
  std::int64_t bytes_per_token = 0;
  bool operator==(const ExchangeSpec&) const = default;
};

// Over the tensor axis: the rows that a matrix reads, and those that it gives, added up into parts.
ExchangeSpec gathered_rows(const Architecture& architecture, const LayerSpec& layer);
ExchangeSpec summed_rows(const Architecture& architecture);

// In the order in which the layer's code asks for them; none: the call is one piece. The engine's
// layers (engine/layers) and programs (core/program/passes/exchanges.cc) meet here, and the
// executor checks that they do.
std::vector<ExchangeSpec> exchanges_of(const Architecture& architecture, const LayerSpec& layer,
                                       Call call);

}  // namespace ptrain::model
