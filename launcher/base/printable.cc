#include "launcher/base/printable.h"

namespace ptrain {

namespace {

constexpr unsigned char kDelete = 0x7f, kControlLead = 0xc2, kFirstAfterControls = 0xa0;

bool is_control(unsigned char c) { return c < ' ' || c == kDelete; }

// Whether `text` begins with a control of two bytes.
bool is_long_control(std::string_view text) {
  return text.size() > 1 && static_cast<unsigned char>(text[0]) == kControlLead &&
         static_cast<unsigned char>(text[1]) < kFirstAfterControls;
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string result;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text.front();
    if (is_long_control(text)) {
      text.remove_prefix(1);
      result += '?';
    } else if (is_control(static_cast<unsigned char>(c)) && kept.find(c) == kept.npos) {
      result += c == '\n' || c == '\t' ? ' ' : '?';
    } else {
      result += c;
    }
  }
  return result;
}

}  // namespace ptrain
