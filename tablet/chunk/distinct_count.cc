// HyperLogLog with an exact start.
#include "tablet/chunk/distinct_count.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

constexpr uint32_t kGreatestExact = 1024;
constexpr uint32_t kSlots = 2048;  // half full at most
constexpr int kIndexBits = 12;
constexpr uint32_t kRegisters = 1u << kIndexBits;
constexpr int kGreatestRank = 64 - kIndexBits + 1;

enum class Form : uint8_t { kExact = 0, kSketch = 1 };

double Sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double y = 1, z = x, before;
  do {
    x *= x;
    before = z;
    z += x * y;
    y += y;
  } while (z != before);
  return z;
}

double Tau(double x) {
  if (x == 0 || x == 1) return 0;
  double y = 1, z = 1 - x, before;
  do {
    x = std::sqrt(x);
    before = z;
    y *= 0.5;
    z -= (1 - x) * (1 - x) * y;
  } while (z != before);
  return z / 3;
}

}  // namespace

uint64_t HashInteger(uint64_t value) { return XXH3_64bits(&value, sizeof value); }

uint64_t HashWide(int128_t value) { return XXH3_64bits(&value, sizeof value); }

uint64_t HashBytes(std::string_view value) { return XXH3_64bits(value.data(), value.size()); }

void DistinctCount::AddExact(uint64_t hash) {
  if (hash == 0) {
    has_zero_ = true;
    return;
  }
  if (slots_.empty()) slots_.resize(kSlots);
  uint32_t slot = static_cast<uint32_t>(hash) & (kSlots - 1);
  while (slots_[slot] != 0) {
    if (slots_[slot] == hash) return;
    slot = (slot + 1) & (kSlots - 1);
  }
  if (used_ == kGreatestExact) {
    Convert();
    AddToRegisters(hash);
    return;
  }
  slots_[slot] = hash;
  ++used_;
}

void DistinctCount::AddToRegisters(uint64_t hash) {
  // The index is the low bits, the rank counts leading zeros of the others: the two are independent.
  const uint32_t index = static_cast<uint32_t>(hash) & (kRegisters - 1);
  const uint64_t rest = hash >> kIndexBits;
  const int rank = rest == 0 ? kGreatestRank : std::countl_zero(rest) - kIndexBits + 1;
  uint8_t& r = registers_[index];
  if (rank > r) r = static_cast<uint8_t>(rank);
}

void DistinctCount::Convert() {
  registers_.assign(kRegisters, 0);
  for (uint64_t hash : slots_) {
    if (hash != 0) AddToRegisters(hash);
  }
  if (has_zero_) AddToRegisters(0);
  slots_ = {};
  used_ = 0;
  has_zero_ = false;
}

void DistinctCount::Merge(const DistinctCount& other) {
  if (registers_.empty() && used_ == 0 && !has_zero_) {
    *this = other;
    return;
  }
  if (other.registers_.empty()) {
    for (uint64_t hash : other.slots_) {
      if (hash != 0) Add(hash);
    }
    if (other.has_zero_) Add(0);
    return;
  }
  if (registers_.empty()) Convert();
  for (uint32_t i = 0; i < kRegisters; ++i) registers_[i] = std::max(registers_[i], other.registers_[i]);
}

uint64_t DistinctCount::Estimate() const {
  if (registers_.empty()) return used_ + (has_zero_ ? 1 : 0);
  constexpr int kQ = kGreatestRank - 1;
  uint32_t histogram[kGreatestRank + 1] = {};
  for (uint8_t r : registers_) ++histogram[r];
  constexpr double kM = kRegisters;
  double z = kM * Tau(1 - histogram[kQ + 1] / kM);
  for (int k = kQ; k >= 1; --k) z = 0.5 * (z + histogram[k]);
  z += kM * Sigma(histogram[0] / kM);
  const double estimate = kM * kM / (2 * std::log(2.0) * z);
  return estimate < 1.8e19 ? static_cast<uint64_t>(std::llround(std::min(estimate, 9e18))) : UINT64_MAX;
}

std::string DistinctCount::Serialize() const {
  std::string out;
  if (!registers_.empty()) {
    out.push_back(static_cast<char>(Form::kSketch));
    out.append(reinterpret_cast<const char*>(registers_.data()), registers_.size());
  } else {
    std::vector<uint64_t> hashes;
    if (has_zero_) hashes.push_back(0);
    for (uint64_t hash : slots_) {
      if (hash != 0) hashes.push_back(hash);
    }
    std::sort(hashes.begin(), hashes.end());
    out.push_back(static_cast<char>(Form::kExact));
    out.append(reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(uint64_t));
  }
  const uint64_t checksum = HashBytes(out);
  out.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  return out;
}

bool DistinctCount::Deserialize(std::string_view bytes) {
  *this = {};
  if (bytes.size() < 1 + sizeof(uint64_t)) return false;
  uint64_t checksum;
  memcpy(&checksum, bytes.data() + bytes.size() - sizeof checksum, sizeof checksum);
  bytes.remove_suffix(sizeof checksum);
  if (HashBytes(bytes) != checksum) return false;
  const Form form = static_cast<Form>(bytes.front());
  bytes.remove_prefix(1);
  if (form == Form::kSketch) {
    if (bytes.size() != kRegisters) return false;
    registers_.assign(bytes.begin(), bytes.end());
    return std::all_of(registers_.begin(), registers_.end(), [](uint8_t r) { return r <= kGreatestRank; });
  }
  if (form != Form::kExact || bytes.size() % sizeof(uint64_t) != 0) return false;
  if (bytes.size() / sizeof(uint64_t) > kGreatestExact + 1) return false;
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t hash;
    memcpy(&hash, bytes.data() + at, sizeof hash);
    Add(hash);
  }
  return true;
}

}  // namespace tessera
