#include <gtest/gtest.h>

#include "core/run/request.h"

namespace ptrain::run {
namespace {

TEST(Request, OfAnExportKeepsItsSettings) {
  Request request;
  request.mode = Mode::kExport;
  request.output = "/models/small";
  request.exporting = {"/runs/a/checkpoints/step-00000042", "bf16", 5'000'000'000};
  EXPECT_EQ(request_from_json_text(to_json_text(request)).value(), request);
  EXPECT_FALSE(request_from_json_text(
      R"({"mode":"export","run_directory":"","attempt":0,"shape":"","control_host":"",)"
      R"("control_port":0,"output":"/a"})"));  // how to write them is missing
}

TEST(Request, OfOtherModesHasNone) {
  Request request;
  request.mode = Mode::kData;
  request.run_directory = "/r";
  EXPECT_EQ(to_json_text(request).find("export"), std::string::npos);
  EXPECT_EQ(request_from_json_text(to_json_text(request)).value(), request);
}

}  // namespace
}  // namespace ptrain::run
