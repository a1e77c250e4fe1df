// Any line is refused with its place, or gives a document that ends in EOS and whose silent tokens
// lie within it.
#include <cstdint>
#include <cstdlib>

#include "engine/base/engine_error.h"
#include "engine/data/encode.h"
#include "engine/data/index.h"
#include "engine/data/tokenizer.h"

namespace {

using namespace ptrain;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const data::Encoded& encoded) {
  require(!encoded.tokens.empty() && encoded.tokens.back() == data::kByteEos);
  std::int64_t end = 0;
  for (const data::TokenRange& range : encoded.silent) {
    require(range.begin >= end && range.begin < range.end);
    end = range.end;
  }
  require(end <= std::ssize(encoded.tokens));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  static const auto bytes = data::open_tokenizer({}, "");
  try {
    check(data::encode_json_line({reinterpret_cast<const std::byte*>(input), size}, "lines:7",
                                 {.tokenizer = bytes.get()}));
  } catch (const EngineError& error) {
    require(error.error().code == ExitCode::kUnusable);
    require(error.error().message.starts_with("lines:7: "));
  }
  return 0;
}
