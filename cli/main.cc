#include <exception>

#include "cli/args.h"
#include "cli/output.h"

namespace {

int run_command(int argc, char** argv) {
  using namespace ptrain;
  const cli::Parsed parsed = cli::parse(argc, argv);
  if (!parsed.command) {
    if (parsed.code == 0) cli::print(parsed.text);
    else cli::say(parsed.text);
    return parsed.code;
  }
  const Result<ExitCode> code = parsed.command();
  return code ? static_cast<int>(*code) : cli::report(code.error());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const std::exception& error) {
    return ptrain::cli::report({ptrain::ExitCode::kBug, error.what(),
                                "this is a bug of ptrain; please report it", {}});
  }
}
