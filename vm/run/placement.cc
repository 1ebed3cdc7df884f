// Host or device, section by section.

#include "vm/run/placement.h"

#include <algorithm>
#include <string>

#include "vm/meaning/aggregate.h"
#include "vm/shares/tablet_shares.h"

namespace tessera::vm {
namespace {

/// Sections with more dictionary entries than this for each thread stay on the host: making an identifier takes 35 ns (on
/// an H100's host). The host makes them, too, but for rows that filters drop.
constexpr uint64_t kMostEntriesOfThread = 1 << 18;

Status RefuseStrategy(JoinStrategy strategy, const std::string& reason) {
  return Unsupported(std::string("join strategy \"") + Info(strategy).word + "\" cannot run this query: " + reason, -1,
                     "Use SET join_strategy = auto.");
}

/// Whether a section needs a join table before it can run: to probe it, or for its least and greatest key.
bool Needs(const Section& s, const SectionTraits& traits, int join) {
  return traits.Probe(join) != nullptr ||
         std::any_of(s.predicates.begin(), s.predicates.end(), [&](const Predicate& p) { return p.join == join; });
}

}  // namespace

Placement::Placement(const RunState& state)
    : state_(state), on_device_(state.program.sections.size()), followers_(on_device_.size()) {
  for (size_t i = 0; i < on_device_.size(); ++i) {
    const Section& s = state_.program.sections[i];
    const auto follow = [&](int32_t earlier) {
      if (earlier >= 0) followers_[static_cast<size_t>(earlier)].push_back(static_cast<int>(i));
    };
    if (s.source_kind == Section::Source::kSection) follow(s.source);
    follow(s.after.append_to);
    follow(s.recursion.first);
  }
}

Status Placement::Choose() {
  TESSERA_TRY(Place());
  for (size_t i = 0; i < on_device_.size(); ++i) {
    const std::optional<JoinStrategy> strategy = ProbesAt(JoinPlace::kDevice, i);
    if (on_device_[i] || !strategy) continue;
    if (state_.options.gpu == nullptr) return RefuseStrategy(*strategy, "it needs a GPU");
    const Status can = state_.options.gpu->CanRun(state_.program, static_cast<int>(i));
    return RefuseStrategy(*strategy, can.ok() ? "it does not run across ranks" : can.message());
  }
  return Status::Ok();
}

Status Placement::Place() {
  all_have_device_ = state_.options.gpu != nullptr;
  if (Exchange* const exchange = state_.options.exchange; exchange != nullptr) {
    TESSERA_ASSIGN(const uint64_t devices, exchange->Sum(all_have_device_ ? 1 : 0));
    all_have_device_ = devices == static_cast<uint64_t>(exchange->ranks());
  }
  if (state_.options.gpu == nullptr) return Status::Ok();
  barred_.assign(on_device_.size(), false);
  do {
    // Backwards, because a join table is built where it is probed.
    for (size_t i = on_device_.size(); i-- > 0;) TESSERA_TRY(PlaceSection(i));
  } while (BarReaders());
  return Status::Ok();
}

bool Placement::BarReaders() {
  bool any = false;
  for (size_t i = 0; i < on_device_.size(); ++i) {
    const Section& s = state_.program.sections[i];
    const bool misses_rows = s.source_kind == Section::Source::kSection && !AreReadOnDevice(s.source);
    if (on_device_[i] && (misses_rows || MissesExchanged(i))) barred_[i] = any = true;
  }
  return any;
}

bool Placement::CanExchange(int join) const {
  const int probing = state_.traits.join(join).exchanged_prober;
  if (!all_have_device_ || probing < 0) return false;
  const auto is_late = [&](int section) {
    return std::ranges::find(state_.handed_on.columns[static_cast<size_t>(section)], true) !=
           state_.handed_on.columns[static_cast<size_t>(section)].end();
  };
  const auto is_number = [](const SqlType& type) {
    return type.storage() == StorageClass::kInt || type.storage() == StorageClass::kWide;
  };
  // Identifiers of texts are each rank's own, and equal doubles may differ in their bits.
  const int builder = state_.join(join).section, source = state_.section(probing).source;
  const auto has_numbers = [&](int section) {
    const Section& s = state_.section(section);
    return std::all_of(s.columns.begin(), s.columns.begin() + s.keys, is_number);
  };
  return has_numbers(builder) && has_numbers(source) && !is_late(builder) && !is_late(source);
}

bool Placement::MissesExchanged(size_t number) const {
  if (state_.options.exchange == nullptr) return false;
  const auto misses = [&](int join) {
    const int builder = state_.join(join).section;
    return state_.section(builder).placement.by_key && !OnDevice(builder);
  };
  return std::ranges::any_of(state_.program.sections[number].predicates,
                             [&](const Predicate& p) { return p.join >= 0 && misses(p.join); }) ||
         std::ranges::any_of(state_.traits.sections[number].probes, misses, &ProbeTrait::join);
}

bool Placement::IsExchangedByDevices(int section) const {
  return state_.options.exchange != nullptr && state_.section(section).placement.by_key &&
         state_.section(section).sink == Section::Sink::kRows && OnAllDevices(section) && AreReadOnDevice(section);
}

Status Placement::PlaceSection(size_t number) {
  const RunOptions& options = state_.options;
  const Section& s = state_.program.sections[number];
  const bool of_join = s.source_kind == Section::Source::kJoin, of_rows = s.source_kind == Section::Source::kSection;
  on_device_[number] = false;
  const bool exchanges = options.exchange != nullptr && s.placement.by_key && s.sink == Section::Sink::kJoin;
  if ((exchanges && !CanExchange(s.join)) || s.source_kind == Section::Source::kOneRow ||
      s.source_kind == Section::Source::kSeries || s.source_kind == Section::Source::kDictionary || barred_[number] ||
      RunsAgain(number))
    return Status::Ok();
  const std::optional<JoinStrategy> of_host = ProbesAt(JoinPlace::kHost, number);
  Status can = of_host ? RefuseStrategy(*of_host, "it runs on the host only")
                       : options.gpu->CanRun(state_.program, static_cast<int>(number));
  if (of_join || of_rows) {
    const bool builds = s.sink == Section::Sink::kJoin;
    const bool wanted = !builds || (of_rows && IsUsedOnDevice(s.join) && !IsUsedOnHost(s.join));
    on_device_[number] = can.ok() && wanted && (options.exchange == nullptr || all_have_device_);
    return of_join && options.gpu_required ? can : Status::Ok();
  }
  if (s.sink == Section::Sink::kJoin) {
    // If every rank has the table, or it is small (IsReadWhole), each builds the whole join table by itself: for a GPU
    // this is faster than exchanging the rows. Otherwise each makes its rows, and the devices exchange them, unless the
    // join is co-located: all rows to all devices, or each row to the device of its key.
    const bool together = options.exchange == nullptr || all_have_device_;
    const bool cheap = options.gpu_required || !ReadsLargeDictionaries(number);
    on_device_[number] = can.ok() && together && cheap && IsUsedOnDevice(s.join) && !IsUsedOnHost(s.join);
    return Status::Ok();
  }
  // A GPU takes tablets and parts of them, also of a table that has fewer than there are ranks. All ranks must share it
  // in the same way, and perhaps some have no GPU.
  const bool costly = ReadsLargeDictionaries(number);
  const bool in_tablets =
      options.exchange == nullptr || all_have_device_ || !s.placement.spans.empty() ||
      SharedByTablets(*state_.SourceTable(s), options.exchange->ranks(), options.exchange->replicate_below());
  if ((!in_tablets || costly) && !options.gpu_required) return Status::Ok();
  on_device_[number] = can.ok();
  return options.gpu_required ? can : Status::Ok();
}

/// A device needs the identifiers of all entries before it starts, unless it only hands the texts on; the host makes
/// them only for the rows that pass the filters.
bool Placement::ReadsLargeDictionaries(size_t number) const {
  const Section& s = state_.program.sections[number];
  const std::vector<ColumnStatistics>& columns = state_.SourceTable(s)->statistics;
  const std::vector<bool>& values = state_.traits.sections[number].reads_slot;
  uint64_t entries = 0;
  for (size_t i = 0; i < s.slots.size(); ++i) {
    if (values[i] && s.slots[i].type.storage() == StorageClass::kText && s.slots[i].map < 0 &&
        !state_.handed_on.slots[number][i])
      entries += columns[static_cast<size_t>(s.slots[i].column)].distinct;
  }
  const auto threads = static_cast<uint64_t>(state_.pool == nullptr ? 1 : state_.pool->threads());
  return entries > kMostEntriesOfThread * threads;
}

/// Sections of a recursion have few rows a turn.
bool Placement::RunsAgain(size_t number) const {
  for (size_t i = number; i < on_device_.size(); ++i) {
    const int32_t first = state_.program.sections[i].recursion.first;
    if (first >= 0 && static_cast<size_t>(first) < number) return true;
  }
  return false;
}

std::optional<JoinStrategy> Placement::ProbesAt(JoinPlace place, size_t number) const {
  for (const ProbeTrait& p : state_.traits.sections[number].probes) {
    const JoinStrategy strategy = state_.join(p.join).strategy;
    if (Info(strategy).place == place) return strategy;
  }
  return std::nullopt;
}

bool Placement::Uses(size_t number, int join) const {
  return UsesJoin(state_.program.sections[number], state_.traits.sections[number], join);
}

bool Placement::IsUsedOnDevice(int join) const {
  for (size_t i = 0; i < on_device_.size(); ++i) {
    if (on_device_[i] && Uses(i, join)) return true;
  }
  return false;
}

bool Placement::IsUsedOnHost(int join) const {
  for (size_t i = 0; i < on_device_.size(); ++i) {
    if (!on_device_[i] && Uses(i, join)) return true;
  }
  return false;
}

bool Placement::AddsWindows(int section) const {
  return OnDevice(section) && !state_.section(section).after.windows.empty() && state_.options.exchange == nullptr &&
         state_.options.gpu->HasWindows(state_.program, section);
}

bool Placement::MayStay(int section) const {
  const Section& s = state_.section(section);
  // (People expect SELECT * FROM (... ORDER BY ...) to keep the order, and the device's rows come in any.)
  const bool in_any_order = s.after.windows.empty() ? s.after.order.empty() : AddsWindows(section);
  const int join = s.placement.by_key ? state_.traits.probed_with[static_cast<size_t>(section)] : -1;
  return OnDevice(section) && s.sink != Section::Sink::kJoin &&
         (!s.placement.by_key || (join >= 0 && CanExchange(join))) && s.after.repeat < 0 && s.recursion.first < 0 &&
         s.after.fold.kind == Section::Fold::kNone && !s.columns.empty() && in_any_order &&
         (s.after.append_to < 0 || MayStay(s.after.append_to));
}

bool Placement::AreReadOnDevice(int section) const {
  if (!MayStay(section)) return false;
  if (state_.section(section).after.append_to >= 0 && state_.options.exchange != nullptr) return false;
  bool any = false;
  for (const int i : followers_[static_cast<size_t>(section)]) {
    const Section& s = state_.section(i);
    if (s.after.append_to == section && state_.options.exchange != nullptr)
      return false;  // (the hosts put rows together)
    // Rows that others are appended to are read as those.
    if (!OnDevice(i) || s.recursion.first == section || (s.after.append_to == section && !AreReadOnDevice(i)))
      return false;
    any = true;
  }
  return any;
}

std::vector<int> Placement::BuiltTogether(int first, size_t* next) const {
  std::vector<int> numbers;
  size_t i = static_cast<size_t>(first);
  for (; i < on_device_.size(); ++i) {
    const Section& s = state_.program.sections[i];
    if (s.source_kind == Section::Source::kDictionary) continue;
    if (s.sink != Section::Sink::kJoin || !on_device_[i]) break;
    const auto needed = [&](int earlier) { return Needs(s, state_.traits.sections[i], state_.section(earlier).join); };
    if (std::any_of(numbers.begin(), numbers.end(), needed)) break;
    numbers.push_back(static_cast<int>(i));
  }
  *next = i;
  return numbers;
}

Status Placement::FallBackToHost(const Status& why) {
  const bool host_can = why.code() == ErrorCode::kUnsupported || why.code() == ErrorCode::kResource;
  if (!host_can || state_.options.gpu_required || state_.options.exchange != nullptr) return why;
  for (size_t i = 0; i < on_device_.size(); ++i) {
    if (const auto strategy = ProbesAt(JoinPlace::kDevice, i)) return RefuseStrategy(*strategy, why.message());
  }
  std::fill(on_device_.begin(), on_device_.end(), false);
  return Status::Ok();
}

}  // namespace tessera::vm
