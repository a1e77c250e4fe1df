#include "engine/data/encode.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/engine_error.h"

namespace ptrain::data {
namespace {

using nlohmann::json;

// Those of OpenAI's chats. Of a role that is spelled otherwise nothing would be learned, unsaid.
constexpr std::string_view kRoles[] = {"system",    "developer", "user",
                                       "assistant", "tool",      "function"};

[[noreturn]] void refuse(const std::string& place, const std::string& reason) {
  throw EngineError(ExitCode::kUnusable, place + ": " + reason,
                    R"(a line is {"text": ...}, {"prompt": ..., "completion": ...} or )"
                    R"({"messages": [{"role": ..., "content": ...}]})");
}

// Puts pieces of text one behind the other; neighbours that are learned alike are one part.
class Writer {
 public:
  Writer(const Encoder& encoder, const std::string& place) : encoder_(encoder), place_(place) {}

  void add(const std::string& text, bool learned) {
    if (learned != learned_) flush();
    learned_ = learned;
    part_ += text;
  }
  Encoded finish(bool learned) {
    flush();
    learned_ = learned;
    result_.tokens.push_back(encoder_.tokenizer->end());
    mark(std::ssize(result_.tokens) - 1);
    return std::move(result_);
  }

 private:
  void flush() {
    if (part_.empty()) return;
    const std::int64_t begin = std::ssize(result_.tokens);
    encoder_.tokenizer->encode({part_, is_first_, place_}, result_.tokens);
    mark(begin);
    is_first_ = false;
    part_.clear();
  }
  void mark(std::int64_t begin) {
    const std::int64_t end = std::ssize(result_.tokens);
    if (learned_ || encoder_.loss_on == recipe::LossOn::kAll || begin == end) return;
    auto& silent = result_.silent;
    if (!silent.empty() && silent.back().end == begin) {
      silent.back().end = end;
    } else {
      silent.push_back({begin, end});
    }
  }

  const Encoder& encoder_;
  const std::string& place_;
  std::string part_;
  bool is_first_ = true, learned_ = false;
  Encoded result_;
};

const std::string& text_of(const json& object, const char* key, const std::string& place) {
  if (!object.contains(key)) refuse(place, std::string("'") + key + "' is missing");
  const json& value = object[key];
  if (!value.is_string()) refuse(place, std::string("'") + key + "' is not a text");
  return value.get_ref<const std::string&>();
}

const std::string& role_of(const json& message, const std::string& place) {
  const std::string& role = text_of(message, "role", place);
  if (std::ranges::find(kRoles, role) == std::end(kRoles))
    refuse(place, fmt::format("a message has the role '{}', which is none of {}", role,
                              fmt::join(kRoles, ", ")));
  return role;
}

Encoded encode_messages(const json& messages, const std::string& place, const Encoder& encoder) {
  if (!messages.is_array() || messages.empty())
    refuse(place, "'messages' is not a list of messages");
  Writer writer(encoder, place);
  bool learned = false;
  for (const json& message : messages) {
    if (!message.is_object()) refuse(place, "a message is not an object");
    const std::string& role = role_of(message, place);
    learned = role == "assistant";
    writer.add("<|im_start|>" + role + "\n", false);
    writer.add(text_of(message, "content", place) + "<|im_end|>", learned);
    writer.add("\n", false);
  }
  return writer.finish(learned);
}

// Of two documents in a line one would be left out, unsaid. Public sets of conversations repeat the
// first message as `prompt`, which is no document without a completion.
void check_one_document(const json& line, const std::string& place) {
  const bool has_answer =
      line.contains("completion") || (line.contains("prompt") && !line.contains("messages"));
  if (line.contains("text") + line.contains("messages") + has_answer > 1)
    refuse(place, "it has more than one of 'text', 'messages', and 'prompt' with 'completion'");
}

Encoded encode_object(const json& line, const std::string& place, const Encoder& encoder) {
  if (!line.is_object()) refuse(place, "it is not an object");
  check_one_document(line, place);
  if (line.contains("messages")) return encode_messages(line["messages"], place, encoder);
  Writer writer(encoder, place);
  if (line.contains("prompt") || line.contains("completion")) {
    writer.add(text_of(line, "prompt", place), false);
    writer.add(text_of(line, "completion", place), true);
  } else {
    writer.add(text_of(line, "text", place), true);
  }
  return writer.finish(true);
}

}  // namespace

Encoded encode_json_line(std::span<const std::byte> line, const std::string& place,
                         const Encoder& encoder) {
  const auto* begin = reinterpret_cast<const char*>(line.data());
  json object;
  try {
    object = json::parse(begin, begin + line.size());
  } catch (const json::parse_error& error) {
    refuse(place, fmt::format("it is not JSON from column {} on", error.byte));
  } catch (const json::exception&) {
    refuse(place, "a number in it is too large");
  }
  return encode_object(object, place, encoder);
}

}  // namespace ptrain::data
