#include "core/base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>


namespace ptrain {

struct Hasher64::State {
  XXH3_state_t* state = XXH3_createState();
  ~State() { XXH3_freeState(state); }
};

std::uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t hash64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::string hash128_hex(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

Hasher64::Hasher64() : state_(std::make_unique<State>()) {
  if (state_->state == nullptr || XXH3_64bits_reset(state_->state) != XXH_OK)
    throw std::bad_alloc();
}
Hasher64::~Hasher64() = default;
Hasher64::Hasher64(Hasher64&&) noexcept = default;
Hasher64& Hasher64::operator=(Hasher64&&) noexcept = default;

void Hasher64::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(state_->state, bytes.data(), bytes.size());
}

std::uint64_t Hasher64::digest() const { return XXH3_64bits_digest(state_->state); }

}  // namespace ptrain
