#include "engine/data/sources.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "engine/base/engine_error.h"
#include "engine/data/file.h"
#include "engine/data/glob.h"

namespace ptrain::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  throw EngineError(ExitCode::kUnusable, message, hint);
}

GlobMatches matches(const std::string& pattern, const std::string& folder) {
  if (has_wildcard(pattern)) return expand_glob(pattern, folder);
  const std::string path = (fs::path(folder) / pattern).string();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error && status.type() != fs::file_type::not_found)
    refuse(fmt::format("cannot reach the data file {}: {}", path, error.message()),
           "make it readable");
  if (fs::is_directory(status))
    refuse(fmt::format("the data path {} is a folder", path),
           fmt::format("write '{}/**' for all files under it", pattern));
  if (!fs::exists(status)) return {};
  if (!fs::is_regular_file(status))
    refuse(fmt::format("the data path {} is not a regular file", path), "name a text file");
  return {{path}, 0};
}

SourceFile describe(const std::string& path) {
  struct stat status {};
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr || ::stat(real, &status) != 0) {
    const std::string reason = std::strerror(errno);
    std::free(real);
    refuse(fmt::format("cannot reach the data file {}: {}", path, reason),
           "make it readable, or leave it out of data");
  }
  const std::int64_t modified_ns =
      std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  SourceFile file;
  file.path = real;
  file.size = status.st_size;
  file.modified_ns = modified_ns;
  std::free(real);
  return file;
}

// By the name; a .bin with an .idx beside it is Megatron's.
recipe::Format format_of(const std::string& path) {
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return recipe::Format::kJsonl;
  if (path.ends_with(".idx") || path.ends_with(".silent")) return recipe::Format::kMegatron;
  if (!path.ends_with(".bin")) return recipe::Format::kText;
  std::error_code error;
  const bool has_table = fs::exists(fs::path(path).replace_extension(".idx"), error);
  return has_table ? recipe::Format::kMegatron : recipe::Format::kBin;
}

// Megatron's files are known by their .bin, whichever was named; a change of any counts.
SourceFile describe_as(recipe::Format format, const std::string& path) {
  if (format == recipe::Format::kAuto) format = format_of(path);
  if (format != recipe::Format::kMegatron) {
    SourceFile file = describe(path);
    file.format = format;
    return file;
  }
  if (!path.ends_with(".bin") && !path.ends_with(".idx") && !path.ends_with(".silent"))
    refuse(fmt::format("{} is neither a .bin nor an .idx of Megatron", path),
           "name one of the two files, or another data format");
  SourceFile file = describe(fs::path(path).replace_extension(".bin").string());
  const SourceFile table = describe(fs::path(path).replace_extension(".idx").string());
  file.format = format;
  file.table = table.path;
  file.modified_ns = std::max(file.modified_ns, table.modified_ns);
  const fs::path silent = fs::path(path).replace_extension(".silent");
  if (std::error_code error; !fs::exists(silent, error)) return file;
  const SourceFile marks = describe(silent.string());
  file.silent = marks.path;
  file.modified_ns = std::max(file.modified_ns, marks.modified_ns);
  return file;
}

// Megatron's table says whether nothing is all that there should be. A small file of lines is
// looked into, since shards of a set may hold a line's end alone.
bool is_empty(const SourceFile& file) {
  constexpr std::int64_t kLookedInto = 4096;
  if (file.format == recipe::Format::kMegatron) return false;
  if (file.format != recipe::Format::kJsonl || file.size > kLookedInto) return file.size == 0;
  return is_blank(read_beginning(file.path, kLookedInto));
}

class Collector {
 public:
  Collector(std::string folder, std::int64_t& skipped)
      : folder_(std::move(folder)), skipped_(skipped) {}

  // The files of these patterns that no earlier pattern gave.
  std::vector<SourceFile> collect(const std::vector<recipe::DataSource>& patterns,
                                  const char* field) {
    std::vector<SourceFile> files;
    for (std::size_t i = 0; i < patterns.size(); ++i) add(patterns[i], i, field, files);
    return files;
  }

 private:
  void add(const recipe::DataSource& source, std::size_t number, const char* field,
           std::vector<SourceFile>& files) {
    const std::string& pattern = source.path;
    const GlobMatches found = matches(pattern, folder_);
    skipped_ += found.skipped;
    if (found.files.empty())
      refuse(fmt::format("{}: no file matches '{}' in {}", field, pattern, folder_),
             "check the path; it is relative to the recipe's folder");
    for (const std::string& path : found.files) {
      SourceFile file = describe_as(source.format, path);
      file.source = number;
      const bool leaves_out = is_empty(file);
      if (leaves_out && !has_wildcard(pattern))
        refuse(fmt::format("{}: the data file {} is empty", field, path),
               "bring its contents back, or leave it out of data");
      if (leaves_out)
        ++skipped_;
      else if (seen_.insert(file.path).second)
        files.push_back(std::move(file));
    }
  }

  std::string folder_;
  std::int64_t& skipped_;
  std::set<std::string> seen_;
};

}  // namespace

Sources find_sources(const recipe::Data& data, const std::string& folder) {
  Sources sources;
  std::error_code error;
  fs::path absolute = fs::absolute(folder.empty() ? "." : folder, error).lexically_normal();
  Collector collector(absolute.string(), sources.skipped);
  sources.validation = collector.collect(data.validation, "data.validation");
  sources.train = collector.collect(data.train, "data.train");
  if (data.max_documents > 0 && std::ssize(sources.train) > data.max_documents)
    sources.train.resize(static_cast<std::size_t>(data.max_documents));
  if (sources.train.empty())
    refuse(
        "data.train: nothing is left to train on: the files are empty or named by "
        "data.validation too",
        "name text files that are not empty");
  if (!data.validation.empty() && sources.validation.empty())
    refuse("data.validation: all files are empty", "name text files that are not empty");
  return sources;
}

}  // namespace ptrain::data
