#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/data/index_format.h"
#include "core/recipe/recipe.h"

namespace ptrain::data {

// A document as it goes into the index: its tokens, and which of them are never targets.
struct Encoded {
  std::vector<std::uint32_t> tokens;
  std::vector<TokenRange> silent;
};

// A line of JSON, by the bytes of its text and an end of document. {"text"}: every token is a
// target. {"prompt", "completion"}: those of the completion are. {"messages": [{role, content}]}:
// each message becomes <|im_start|>ROLE newline CONTENT<|im_end|> newline, and those of an
// assistant's content with its <|im_end|> are. The end of document is a target where the last
// message or the completion is one. EngineError (kUnusable) that begins with `place`.
Encoded encode_json_line(std::span<const std::byte> line, const std::string& place);

}  // namespace ptrain::data
