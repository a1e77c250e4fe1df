#include <gtest/gtest.h>

#include "launcher/base/printable.h"

namespace ptrain {
namespace {

TEST(Printable, ControlsBecomeQuestionMarks) {
  EXPECT_EQ(printable("a\x1b[2Jb\r\n\x7f"), "a?[2Jb? ?");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "?");
}

TEST(Printable, ControlsOfTwoBytesToo) {
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "?2J");  // U+009B is the same as ESC [
  EXPECT_EQ(printable("\xc2\xa7 gr\xc3\xbc\xc3\x9f"), "\xc2\xa7 gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(printable("\xc2"), "\xc2");
}

TEST(Printable, KeepsWhatItIsToldTo) { EXPECT_EQ(printable("a\tb\nc\r", "\t\n"), "a\tb\nc?"); }

}  // namespace
}  // namespace ptrain
