#include "engine/checkpoint/fill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/base/engine_error.h"
#include "engine/checkpoint/convert.h"
#include "engine/checkpoint/frame.h"
#include "engine/checkpoint/stored_item.h"

namespace ptrain::checkpoint {

namespace {

constexpr std::int64_t kMaxGap = 16 << 10;  // bytes read in vain rather than with a second call
constexpr std::int64_t kMaxSpan = 8 << 20;  // bytes of one read into a buffer

[[noreturn]] void refuse(const std::string& key, std::string_view why) {
  throw EngineError(ExitCode::kUnusable, fmt::format("'{}' in the checkpoint: {}", key, why));
}

// A chunk's archive: what its tensor is and where its elements start.
struct Source {
  dcp::Location location;
  dcp::StoredTensor stored;
  StoredItem::Place place;  // of the elements in the file
  std::int64_t element;     // bytes
};

Source open_chunk(const std::string& key, const dcp::Chunk& chunk, DType wanted, OpenFiles& files) {
  const auto file = files.get(chunk.location.file);
  const StoredItem item(*file, chunk.location, key);
  auto stored = dcp::read_tensor(item.pickle());
  if (!stored) refuse(key, stored.error().message);
  if (!convertible(stored->dtype, wanted))
    refuse(key, fmt::format("its elements are {}, which cannot be loaded as {}", stored->dtype,
                            name_of(wanted)));
  if (stored->sizes != chunk.box.sizes) refuse(key, "a chunk has another size than .metadata says");
  const StoredItem::Place place = item.place(stored->record);
  const std::int64_t element = dcp::size_of_stored(stored->dtype);
  std::int64_t last = stored->offset;  // of the farthest element
  for (std::size_t d = 0; d < stored->sizes.size(); ++d) {
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(stored->sizes[d] - 1, stored->strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      refuse(key, "its strides are absurd");
  }
  if (last >= place.bytes / element) refuse(key, "a chunk has fewer elements than its shape needs");
  item.check(stored->record);
  return {chunk.location, std::move(*stored), place, element};
}

bool has_own_frame(const Source& source, OpenFiles& files) {
  const auto file = files.get(source.location.file);
  return has_own_frame(*file, source.location, source.stored, source.place);
}

// Whether the flat span of a box meets the run: the cheap test before a chunk is opened.
bool touches(const dcp::Run& run, const dcp::Sizes& shape, const dcp::Box& box) {
  const auto strides = dcp::row_major_strides(shape);
  std::int64_t first = 0;
  std::int64_t last = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    first += box.offsets[d] * strides[d];
    last += (box.offsets[d] + box.sizes[d] - 1) * strides[d];
  }
  return first < run.end && last >= run.begin;
}

class Filler {
 public:
  Filler(const TensorItem& item, OpenFiles& files)
      : item_(item), files_(files), bytes_(size_of(item.dtype)), to_(item.target()) {}

  // Reads the copies of one chunk; `use` gets converted elements and their place in the run.
  template <class Use>
  void read(const Source& source, std::vector<dcp::Copy> copies, Use&& use) {
    std::sort(copies.begin(), copies.end(),
              [](const auto& a, const auto& b) { return a.source < b.source; });
    const auto file = files_.get(source.location.file);
    for (std::size_t i = 0; i < copies.size();) {
      const std::size_t end = end_of_span(source, copies, i);
      const std::int64_t from = copies[i].source;
      const std::int64_t count = copies[end - 1].source + copies[end - 1].count - from;
      buffer_.resize(static_cast<std::size_t>(count * source.element));
      file->read(source.place.offset + from * source.element, buffer_);
      for (; i < end; ++i) {
        const auto part = std::span(buffer_).subspan(
            static_cast<std::size_t>((copies[i].source - from) * source.element),
            static_cast<std::size_t>(copies[i].count * source.element));
        use(part, copies[i]);
      }
    }
  }

  // Whether the copies are all of a chunk, as it is.
  bool is_whole(const Source& source, const std::vector<dcp::Copy>& copies) const {
    return source.stored.dtype == name_of(item_.dtype) && copies.size() == 1 &&
           copies[0].count * source.element == source.place.bytes;
  }

  // Reads all of a chunk, and its checksum while the processor's cache has each piece.
  void store_checked(const Source& source, const dcp::Copy& copy) {
    constexpr std::int64_t kPiece = 256 << 10;
    const auto file = files_.get(source.location.file);
    std::uint32_t crc = 0;
    for (std::int64_t at = 0; at < source.place.bytes; at += kPiece) {
      const auto bytes = std::min(kPiece, source.place.bytes - at);
      const std::span piece(to_ + copy.target * bytes_ + at, static_cast<std::size_t>(bytes));
      file->read(source.place.offset + at, piece);
      crc = dcp::crc32(piece, crc);
    }
    if (crc != source.place.crc)
      refuse(item_.key, fmt::format("it is damaged: its checksum in {} differs", file->path()));
  }

  void store(const Source& source, const std::vector<dcp::Copy>& copies) {
    const auto file = files_.get(source.location.file);
    std::vector<dcp::Copy> buffered;
    for (const dcp::Copy& copy : copies) {
      const bool direct =
          source.stored.dtype == name_of(item_.dtype) && copy.count * source.element >= kMaxGap;
      if (direct)
        file->read(source.place.offset + copy.source * source.element,
                   {to_ + copy.target * bytes_, static_cast<std::size_t>(copy.count * bytes_)});
      else
        split(copy, buffered);
    }
    read(source, std::move(buffered), [&](std::span<const std::byte> from, const dcp::Copy& copy) {
      convert(from, source.stored.dtype, to_ + copy.target * bytes_, item_.dtype);
    });
  }

  void compare(const Source& source, const std::vector<dcp::Copy>& copies) {
    std::vector<dcp::Copy> buffered;
    for (const dcp::Copy& copy : copies) split(copy, buffered);
    std::vector<std::byte> converted;
    read(source, std::move(buffered), [&](std::span<const std::byte> from, const dcp::Copy& copy) {
      converted.resize(static_cast<std::size_t>(copy.count * bytes_));
      convert(from, source.stored.dtype, converted.data(), item_.dtype);
      if (std::memcmp(converted.data(), to_ + copy.target * bytes_, converted.size()) != 0)
        refuse(item_.key, fmt::format("element {} is stored twice with different values",
                                      item_.begin + copy.target));
    });
  }

 private:
  // Pieces that fit the buffer.
  static void split(dcp::Copy copy, std::vector<dcp::Copy>& pieces) {
    constexpr std::int64_t kMost = kMaxSpan / 8;
    for (; copy.count > kMost; copy.count -= kMost) {
      pieces.push_back({copy.source, copy.target, kMost});
      copy.source += kMost;
      copy.target += kMost;
    }
    pieces.push_back(copy);
  }

  static std::size_t end_of_span(const Source& source, const std::vector<dcp::Copy>& copies,
                                 std::size_t begin) {
    std::size_t end = begin + 1;
    for (; end < copies.size(); ++end) {
      const std::int64_t gap = copies[end].source - copies[end - 1].source - copies[end - 1].count;
      const std::int64_t span = copies[end].source + copies[end].count - copies[begin].source;
      if (gap < 0 || gap * source.element > kMaxGap || span * source.element > kMaxSpan) break;
    }
    return end;
  }

  const TensorItem& item_;
  OpenFiles& files_;
  std::int64_t bytes_;  // of one element of the run
  std::byte* to_;
  std::vector<std::byte> buffer_;
};

struct Planned {
  std::size_t source;
  dcp::Copy copy;
};

// Divides the copies into those that fill each element once, and those that come to elements
// already filled.
struct Parts {
  std::vector<std::vector<dcp::Copy>> stores, compares;
};
Parts divide(const TensorItem& item, std::vector<Planned> plan, std::size_t num_sources) {
  std::sort(plan.begin(), plan.end(),
            [](const Planned& a, const Planned& b) { return a.copy.target < b.copy.target; });
  Parts parts{std::vector<std::vector<dcp::Copy>>(num_sources),
              std::vector<std::vector<dcp::Copy>>(num_sources)};
  std::int64_t covered = 0;
  const auto missing = [&](std::int64_t end) {
    refuse(item.key,
           fmt::format("elements {} to {} are in no file", item.begin + covered, item.begin + end));
  };
  for (auto& [source, copy] : plan) {
    if (copy.target > covered) missing(copy.target);
    const std::int64_t again = std::min(copy.count, covered - copy.target);
    if (again > 0) parts.compares[source].push_back({copy.source, copy.target, again});
    if (again == copy.count) continue;
    parts.stores[source].push_back({copy.source + again, copy.target + again, copy.count - again});
    covered = copy.target + copy.count;
  }
  if (covered != item.end - item.begin) missing(item.end - item.begin);
  return parts;
}

}  // namespace

bool fill(const TensorItem& item, const dcp::TensorEntry& entry, OpenFiles& files) {
  std::vector<Source> sources;
  std::vector<Planned> plan;
  // All below is as the part sees it.
  const dcp::Box part = item.box();
  const auto pieces = dcp::pieces_of_run(part.sizes, {item.begin, item.end}, item.head_rows);
  for (const dcp::Chunk& chunk : entry.chunks) {
    const auto common = dcp::intersection(chunk.box, part);
    if (!common) continue;
    const dcp::Box box = dcp::relative_to(part.offsets, *common);
    bool opened = false;
    for (const dcp::Piece& piece : pieces) {
      if (!touches(piece.stored, part.sizes, box)) continue;
      if (!opened) sources.push_back(open_chunk(item.key, chunk, item.dtype, files));
      opened = true;
      const dcp::StoredTensor stored = dcp::stored_part(sources.back().stored, chunk.box, *common);
      for (dcp::Copy copy : dcp::overlap(part.sizes, piece.stored, box.offsets, stored)) {
        copy.target += piece.target;
        plan.push_back({sources.size() - 1, copy});
      }
    }
  }
  const Parts parts = divide(item, std::move(plan), sources.size());
  Filler filler(item, files);
  bool all_checked = true;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const auto& stores = parts.stores[i];
    const bool is_checked = sources[i].place.crc != 0 && filler.is_whole(sources[i], stores);
    if (is_checked)
      filler.store_checked(sources[i], stores[0]);
    else
      filler.store(sources[i], stores);
    all_checked = all_checked && is_checked && has_own_frame(sources[i], files);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) filler.compare(sources[i], parts.compares[i]);
  return all_checked;
}

}  // namespace ptrain::checkpoint
