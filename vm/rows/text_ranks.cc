#include "vm/rows/text_ranks.h"

#include <algorithm>
#include <numeric>

#include "base/interrupt.h"
#include "base/text_head.h"

namespace tessera::vm {
namespace {

/// Up to this many strings are compared with each other.
constexpr size_t kFew = 8;
/// Threads share texts if their number times the threads is this, in some buckets for each thread. (Two threads take as
/// long as one for 150,000 numbered names, and 0.8 of it for 1.5 M comments.) A sample has kSampled texts for each
/// bucket.
constexpr size_t kLeastShared = 1 << 18, kBucketsEach = 4, kMostBuckets = 128, kSampled = 32;
static_assert(2 * kMostBuckets <= UINT8_MAX + 1);

bool IsShared(const ThreadPool* threads, size_t texts) {
  return Workers(threads) > 1 && texts >= std::max(kLeastShared / Workers(threads), kMostBuckets * kSampled);
}

/// The head of what a string has from `depth` on.
uint64_t HeadAt(std::string_view s, size_t depth) { return TextHead(s.substr(std::min(depth, s.size()))); }

/// A text on its way to its place.
struct Sorting {
  std::string_view text;
  uint64_t head;
  uint32_t number;
};

void Compare(std::span<Sorting> texts) {
  std::sort(texts.begin(), texts.end(),
            InterruptibleLess([](const Sorting& a, const Sorting& b) { return a.text < b.text; }));
}

void SortFrom(size_t depth, std::span<Sorting> texts);

/// Sorts texts that are all different and alike up to `depth`, where their heads are.
void SortByHeads(size_t depth, std::span<Sorting> texts) {
  std::sort(texts.begin(), texts.end(),
            InterruptibleLess([](const Sorting& a, const Sorting& b) { return a.head < b.head; }));
  for (size_t begin = 0, end = 0; begin < texts.size(); begin = end) {
    while (end < texts.size() && texts[end].head == texts[begin].head) ++end;
    const std::span<Sorting> alike = texts.subspan(begin, end - begin);
    // Where one ends, zeros may be another one's own.
    const bool ends = std::ranges::any_of(alike, [&](const Sorting& s) { return s.text.size() < depth + 8; });
    if (alike.size() > 1) ends ? Compare(alike) : SortFrom(depth + 8, alike);
  }
}

/// The same without heads. Names and numbered keys often begin alike: numbers made of what follows the common part are
/// sorted, not strings.
void SortFrom(size_t depth, std::span<Sorting> texts) {
  if (texts.size() <= kFew) return Compare(texts);
  size_t common = texts.front().text.size();
  for (const Sorting& s : texts) common = CommonPrefix(texts.front().text, s.text, common);
  depth = std::max(depth, common);
  for (Sorting& s : texts) {
    ThrowIfInterrupted(s.number);
    s.head = HeadAt(s.text, depth);
  }
  SortByHeads(depth, texts);
}

/// Sorts texts that are all different and alike up to `alike`. Threads share buckets that follow each other: a sample of heads
/// after what all texts have in common cuts them. Every head that cuts has a bucket of its own, which is large where
/// most texts begin alike and some do not; threads share it one after the other.
Status SortShared(ThreadPool* threads, size_t alike, std::span<Sorting> texts) {
  const size_t workers = Workers(threads), n = texts.size();
  const auto each_of = [&](size_t worker, const auto& f) {
    for (size_t i = n * worker / workers; i < n * (worker + 1) / workers; ++i) {
      ThrowIfInterrupted(i);
      f(i);
    }
  };
  const std::string_view one = texts.front().text;
  std::vector<size_t> common(workers, one.size());
  TESSERA_TRY(ForEach(threads, workers, [&](size_t w) {
    size_t most = one.size();
    each_of(w, [&](size_t i) { most = CommonPrefix(one, texts[i].text, most); });
    common[w] = most;
    return Status::Ok();
  }));
  const size_t depth = std::max(alike, std::ranges::min(common));
  const size_t samples = std::min(workers * kBucketsEach, kMostBuckets) * kSampled;
  std::vector<uint64_t> sample;
  for (size_t i = 0; i < samples; ++i) sample.push_back(HeadAt(texts[i * n / samples].text, depth));
  std::ranges::sort(sample);
  std::vector<uint64_t> cuts;
  for (size_t i = kSampled; i < samples; i += kSampled) cuts.push_back(sample[i]);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  // Those less than the first cut, those equal to it, those between it and the second one, and so on.
  const size_t buckets = 2 * cuts.size() + 1;
  std::vector<uint8_t> bucket_of(n);
  std::vector<size_t> places((buckets + 1) *
                             workers);  ///< by bucket: how many each worker has; then where its next one goes
  TESSERA_TRY(ForEach(threads, workers, [&](size_t w) {
    std::vector<size_t> counts(buckets);
    each_of(w, [&](size_t i) {
      Sorting& s = texts[i];
      s.head = HeadAt(s.text, depth);
      const auto cut = std::ranges::lower_bound(cuts, s.head);
      const bool equal = cut != cuts.end() && *cut == s.head;
      bucket_of[i] = static_cast<uint8_t>(2 * (cut - cuts.begin()) + (equal ? 1 : 0));
      ++counts[bucket_of[i]];
    });
    for (size_t b = 0; b < buckets; ++b) places[b * workers + w] = counts[b];
    return Status::Ok();
  }));
  std::exclusive_scan(places.begin(), places.end(), places.begin(), size_t{0});
  const std::vector<size_t> firsts = places;
  std::vector<Sorting> moved(n);
  TESSERA_TRY(ForEach(threads, workers, [&](size_t w) {
    each_of(w, [&](size_t i) { moved[places[bucket_of[i] * workers + w]++] = texts[i]; });
    return Status::Ok();
  }));
  TESSERA_TRY(ForEach(threads, workers, [&](size_t w) {
    each_of(w, [&](size_t i) { texts[i] = moved[i]; });
    return Status::Ok();
  }));
  moved = {};
  bucket_of = {};
  const auto bucket = [&](size_t b) {
    return texts.subspan(firsts[b * workers], firsts[(b + 1) * workers] - firsts[b * workers]);
  };
  std::vector<size_t> large;  // (It is deeper there; where nothing is left of a text, zeros may be another one's own.)
  for (size_t b = 1; b < buckets; b += 2) {
    const auto goes_on = [&](const Sorting& s) { return s.text.size() >= depth + 8; };
    if (IsShared(threads, bucket(b).size()) && std::ranges::all_of(bucket(b), goes_on)) large.push_back(b);
  }
  TESSERA_TRY(ForEach(threads, buckets, [&](size_t b) {
    if (std::ranges::find(large, b) == large.end()) SortByHeads(depth, bucket(b));
    return Status::Ok();
  }));
  for (const size_t b : large) TESSERA_TRY(SortShared(threads, depth + 8, bucket(b)));
  return Status::Ok();
}

}  // namespace

Result<std::vector<uint32_t>> OrderOf(std::span<const std::string_view> texts, ThreadPool* threads) {
  std::vector<Sorting> sorting;
  sorting.reserve(texts.size());
  for (const std::string_view text : texts) sorting.push_back({text, 0, static_cast<uint32_t>(sorting.size())});
  if (IsShared(threads, texts.size())) {
    TESSERA_TRY(SortShared(threads, 0, sorting));
  } else {
    SortFrom(0, sorting);
  }
  std::vector<uint32_t> order;
  order.reserve(texts.size());
  for (const Sorting& s : sorting) order.push_back(s.number);
  return order;
}

Status TextRanks::Update(const StringPool& pool, ThreadPool* threads) {
  const size_t had = sorted_.size(), count = pool.count();
  if (had == count) return Status::Ok();
  const InterruptScope without_interrupts{nullptr};  // the device may be at work
  std::vector<std::string_view> added;
  for (size_t id = had; id < count; ++id) added.push_back(pool.Get(static_cast<int64_t>(id)));
  TESSERA_ASSIGN(const std::vector<uint32_t> order, OrderOf(added, threads));
  for (const uint32_t place : order) sorted_.push_back(static_cast<uint32_t>(had) + place);
  std::inplace_merge(sorted_.begin(), sorted_.begin() + static_cast<ptrdiff_t>(had), sorted_.end(),
                     [&](uint32_t a, uint32_t b) { return pool.Get(a) < pool.Get(b); });
  ranks_.resize(count);
  for (size_t rank = 0; rank < count; ++rank) ranks_[sorted_[rank]] = static_cast<uint32_t>(rank);
  return Status::Ok();
}

}  // namespace tessera::vm
