#include <gtest/gtest.h>

#include "launcher/start/container.h"

namespace ptrain::start {
namespace {

using recipe::ContainerRuntime;

const std::vector<std::string> kFolders = {"/runs/a b", "/opt/bin"};

TEST(Container, NoneOpensNothing) { EXPECT_TRUE(opening({}, kFolders).empty()); }

TEST(Container, PyxisTakesOptionsOfSrun) {
  EXPECT_EQ(
      opening({"nvcr.io#a/b:1", ContainerRuntime::kPyxis, {"/data", "/scratch:/s"}}, kFolders),
      (std::vector<std::string>{"--container-image=nvcr.io#a/b:1",
                                "--container-mounts=/runs/a b:/runs/a b,/opt/bin:/opt/bin,"
                                "/data:/data,/scratch:/s"}));
}

TEST(Container, ApptainerRunsTheWorker) {
  EXPECT_EQ(
      opening({"/images/a.sif", ContainerRuntime::kApptainer, {"/data"}}, kFolders),
      (std::vector<std::string>{"apptainer", "exec", "--bind", "/runs/a b:/runs/a b", "--bind",
                                "/opt/bin:/opt/bin", "--bind", "/data:/data", "/images/a.sif"}));
}

TEST(Container, IsRefusedWhereNothingRunsIt) {
  EXPECT_TRUE(check_container({}, ""));
  const recipe::Container image{"a", ContainerRuntime::kPyxis, {}};
  EXPECT_TRUE(check_container(image, "  --container-image=[USER@][REGISTRY#]IMAGE[:TAG]\n"));
  EXPECT_FALSE(check_container(image, "  --container      Path to OCI container bundle\n"));
  EXPECT_FALSE(check_container({"a", ContainerRuntime::kPyxis, {"/a,/b"}}, "--container-image"));
  EXPECT_FALSE(check_container({"a", ContainerRuntime::kPyxis, {"data"}}, "--container-image"));
}

}  // namespace
}  // namespace ptrain::start
