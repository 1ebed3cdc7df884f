#include "kernels/run/tablet_encoder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <numeric>
#include <utility>

#include "base/exception_status.h"
#include "base/shared_loops.h"
#include "base/thread_pool.h"
#include "kernels/text/text_tests.h"
#include "tablet/files/file_mapping.h"
#include "vm/machine/entry_machine.h"
#include "vm/program/section_traits.h"

namespace tessera::kernels {
namespace {

/// Binding a tablet takes a microsecond, and waking threads fifty; but one that is read for the first time is checked,
/// which takes much longer. From the first one that took so long, several threads encode, until that is fast again.
constexpr auto kSlowBinding = std::chrono::microseconds(100);
/// Tablets that are encoded ahead, before there is anything to copy: encoded ones are small.
constexpr size_t kMostAhead = 4096;
/// Tablets that one thread encodes before the copies of the first start.
constexpr size_t kEncodedTogether = 64;
/// From this number of tablets on, several threads encode them where nothing can start before all are encoded.
constexpr size_t kManyTablets = 128;
/// What several threads read of tablets before the copies of the first start: 64 MiB are checked in some milliseconds,
/// and keep the link busy for one.
constexpr uint64_t kSharedBytes = uint64_t{64} << 20;

/// Encodes up to `most` tablets from `first` on. true: one took so long that several threads should do it, and it was the
/// last one. `ahead` may be nullptr.
bool EncodeTablets(GpuDevice* gpu, const vm::SectionEncoder& encoder, const TableInfo& table, size_t first, size_t most,
                   const vm::TabletEncoding* like, vm::ReadAhead* ahead, ThreadPool* pool,
                   std::vector<tessera::Result<vm::TabletEncoding>>* encoded) {
  const LoopRunner loop = [&](size_t n, const std::function<Status(size_t)>& f) { return ForEach(pool, n, f); };
  const size_t end = std::min(table.tablets.size(), first + most);
  encoded->reserve(end - first);
  auto start = std::chrono::steady_clock::now();
  for (size_t i = first; i < end; ++i) {
    if (ahead != nullptr) ahead->Begin(i);
    const tessera::Result<vm::TabletEncoding>& b =
        encoded->emplace_back(encoder.Encode(*table.tablets[i], like, loop, gpu->encodings.Take()));
    if (b.ok() && !b->skip) like = &*b;
    const auto now = std::chrono::steady_clock::now();
    if (now - start > kSlowBinding) return true;
    start = now;
  }
  return false;
}

/// Texts of a chunk that go to the device: several tablets have to be there at a time.
uint64_t MostTextBytes(const GpuDevice& gpu) { return gpu.cache.budget() / 16; }

/// What the encoder of a section leaves to the device.
void LeaveToDevice(const GpuDevice& gpu, const vm::SectionContext& context, const TextTests& tests,
                   vm::SectionEncoder* encoder) {
  if (!FileMapping::any_lost()) encoder->LeavePacked();
  encoder->LeaveToDevice(tests.predicates(), MostTextBytes(gpu));
  if (context.late_texts == nullptr) return;
  encoder->HandOn(&context.handed_on->slots[static_cast<size_t>(context.section)], context.late_texts);
}

}  // namespace

TabletsAhead EncodeAhead(GpuDevice* gpu, const vm::SectionContext& context,
                         const std::vector<vm::KeyRange>& key_ranges) {
  vm::SectionEncoder encoder(*context.program, context.section, context.traits->section(context.section),
                             context.strings, &vm::MakeEntryMachine, key_ranges);
  const vm::Section& section = context.program->sections[static_cast<size_t>(context.section)];
  LeaveToDevice(*gpu, context, TextTests(*context.program, section), &encoder);
  TabletsAhead ahead{context.section, context.table, {}};
  const size_t most = std::min(context.table->tablets.size(), kMostAhead);
  ahead.tablets.reserve(most);
  const vm::TabletEncoding* like = nullptr;
  uint64_t rows = 0;
  for (size_t done = 0; done < most && !ahead.slow && (rows < kRowsToStart || gpu->IsBusy());) {
    ahead.slow = EncodeTablets(gpu, encoder, *context.table, done, std::min(most - done, kLooks), like, nullptr,
                               context.pool, &ahead.tablets);
    for (; done < ahead.tablets.size(); ++done) {
      const tessera::Result<vm::TabletEncoding>& b = ahead.tablets[done];
      if (!b.ok() || b->skip) continue;
      like = &*b;
      rows += b->rows;
    }
  }
  return ahead;
}

TabletEncoder::TabletEncoder(GpuDevice* gpu, const vm::SectionContext& context, const TextTests& tests,
                             const std::vector<vm::KeyRange>& key_ranges, bool of_table)
    : gpu_(*gpu),
      context_(context),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      encoder_(*context.program, context.section, context.traits->section(context.section), context.strings,
               &vm::MakeEntryMachine, key_ranges) {
  LeaveToDevice(*gpu, context, tests, &encoder_);
  if (!of_table) return;
  std::vector<size_t> order(context.table->tablets.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // What has been read before may be on the device by now: it is not read again.
  ahead_ = std::make_unique<vm::ReadAhead>(&encoder_, context.table, std::move(order), false);
}

Status TabletEncoder::Use(TabletsAhead ahead) {
  encoded_ = std::move(ahead.tablets);
  is_slow_ = ahead.slow;
  for (tessera::Result<vm::TabletEncoding>& b : encoded_) {
    if (b.ok() && !b->skip) TESSERA_TRY(encoder_.EncodeKeyRanges(&*b));
  }
  return Status::Ok();
}

void TabletEncoder::Forget() {
  for (tessera::Result<vm::TabletEncoding>& e : encoded_) {
    if (e.ok()) gpu_.encodings.Keep(std::move(*e));  // of a tablet that was skipped; others are empty
  }
  encoded_.clear();
}

tessera::Result<vm::TabletEncoding>& TabletEncoder::Encode(size_t number, const vm::TabletEncoding* like,
                                                           bool all_first) {
  const TableInfo& table = *context_.table;
  if (number >= first_ && number < first_ + encoded_.size()) return encoded_[number - first_];
  Forget();
  first_ = number;
  const size_t threads = static_cast<size_t>(ThreadsOf(context_)), left = table.tablets.size() - number;
  const bool are_waited_for = all_first && left >= kManyTablets;
  const size_t count = is_slow_ ? SharedTablets(number, threads) : std::min(left, threads * kEncodedTogether / 2),
               workers = std::min(threads, count);
  if ((!is_slow_ && !are_waited_for) || workers == 1) {
    is_slow_ =
        EncodeTablets(&gpu_, encoder_, table, number, kEncodedTogether, like, ahead_.get(), context_.pool, &encoded_);
    return encoded_[0];
  }
  EncodeShared(number, count, workers, like);
  return encoded_[0];
}

void TabletEncoder::EncodeShared(size_t number, size_t count, size_t workers, const vm::TabletEncoding* like) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<vm::TabletEncoding> spare(count);
  for (size_t i = 0; i < count; ++i) {
    spare[i] = gpu_.encodings.Take();
    encoded_.emplace_back(Cancelled());
  }
  // Threads beyond the encoders share what takes longest, work on texts.
  SharedLoops loops;
  const LoopRunner loop = [&](size_t n, const std::function<Status(size_t)>& f) { return loops.Run(n, f); };
  std::atomic<size_t> encoding{workers}, taken{0};
  // Where tablets were fast to encode, one that is not ends the round: its copies should start.
  std::atomic<bool> end{false};
  const auto encode = [&](size_t i, const vm::TabletEncoding* as) -> tessera::Result<vm::TabletEncoding> {
    if (context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed)) return Cancelled();
    ahead_->Begin(number + i);
    const auto begin = std::chrono::steady_clock::now();
    tessera::Result<vm::TabletEncoding> encoded =
        encoder_.Encode(*context_.table->tablets[number + i], as, loop, std::move(spare[i]));
    if (!is_slow_ && std::chrono::steady_clock::now() - begin > kSlowBinding) end = true;
    return encoded;
  };
  const bool texts = std::any_of(section_.slots.begin(), section_.slots.end(), [](const vm::Slot& s) {
    return s.map >= 0 || s.type.storage() == StorageClass::kText;
  });
  const Status status = context_.pool->Run(texts ? ThreadsOf(context_) : static_cast<int>(workers), [&](int worker) {
    const size_t w = static_cast<size_t>(worker);
    const vm::TabletEncoding* as = like;
    // (In order, as the disk is told.)
    for (size_t i; w < workers && !end && (i = taken++) < count;) {
      encoded_[i] = Caught([&] { return encode(i, as); });
      if (encoded_[i].ok() && !encoded_[i]->skip) as = &*encoded_[i];
    }
    if (w < workers && --encoding == 0) loops.Wake();
    loops.HelpUntil([&] { return encoding == 0; });
    return Status::Ok();
  });
  const size_t done = std::clamp<size_t>(taken, 1, count);
  encoded_.erase(encoded_.begin() + static_cast<ptrdiff_t>(done), encoded_.end());
  for (size_t i = done; i < count; ++i) gpu_.encodings.Keep(std::move(spare[i]));
  is_slow_ = (std::chrono::steady_clock::now() - start) * workers > kSlowBinding * done;
  if (!status.ok()) encoded_[0] = status;
}

size_t TabletEncoder::SharedTablets(size_t number, size_t workers) const {
  const size_t left = context_.table->tablets.size() - number;
  // (Of the first tablets nothing is known.)
  return std::min(left, tablet_bytes_ == 0 ? workers : std::max<size_t>(workers, kSharedBytes / tablet_bytes_));
}

}  // namespace tessera::kernels
