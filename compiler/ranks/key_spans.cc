#include "compiler/ranks/key_spans.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/ranks/stored_columns.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/types.h"
#include "vm/encode/section_encoder.h"
#include "vm/machine/entry_machine.h"
#include "vm/program/distribution.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

using vm::Program;
using vm::Section;
using vm::TabletSpan;

/// A rank may have this part of an equal share more. The end of a span may be half as far from where shares are equal, so
/// that the keys of ranks are apart: a join gains little by that, but groups need it. One of some adjacent tablets begins with
/// a new key: one of four if keys have four rows.
constexpr double kToleranceOfJoins = 1.0 / 8, kToleranceOfGroups = 1.0 / 3;
/// A rank scans at most this part of a build side, and all together this number of times its rows: otherwise not enough is gained.
constexpr double kMostBuilt = 0.75, kMostBuiltByAll = 1.5;
/// A build side has at least this part of the rows that probe: for less a large table is not scanned in another way, which
/// makes GPUs cache other tablets.
constexpr double kLeastBuilt = 1.0 / 64;
/// To know the ranges of more tablets takes rank 0 too long, which would have to open them all.
constexpr size_t kMostTablets = 8192;
/// Of rows that predicates leave, a rank may have this number of times an equal share.
constexpr double kMostLive = 1.25;
/// Tablets of each rank, at least.
constexpr size_t kLeastTablets = 2;

ColumnRange Hull(const ColumnRanges& ranges, const TabletSpan& span) {
  ColumnRange hull;
  for (uint32_t t = span.first; t < span.end; ++t) hull.Add(ranges[t]);
  return hull;
}

class Assignment {
 public:
  Assignment(const Snapshot& snapshot, const PlanOptions& options, Code* code)
      : snapshot_(snapshot),
        options_(options),
        ranks_(static_cast<size_t>(options.ranks)),
        code_(*code),
        program_(*code->program),
        traits_(vm::TraitsOf(program_)),
        may_stay_(vm::MayStayDistributed(program_, traits_)) {}

  void Joins() {
    // Backwards: what probes a table is after what makes it.
    for (size_t i = program_.sections.size(); i-- > 0;) {
      if (program_.sections[i].sink == Section::Sink::kJoin) AlignBuilder(&program_.sections[i]);
    }
  }

  void Groups() {
    for (size_t i = 0; i < program_.sections.size(); ++i) {
      Section& s = program_.sections[i];
      const bool many = code_.estimates[i] > static_cast<double>(options_.exchange_above);
      if (many && !s.placement.co_located && !vm::ExchangeKeys(s).empty()) Separate(i, &s);
    }
  }

 private:
  /// The table that a section scans, if its tablets may go to any rank; else nullptr.
  const TableInfo* FreeTable(const Section& s) const {
    const TableInfo* const table = vm::ScannedTable(snapshot_, program_, s);
    const bool is_free = table != nullptr && table->buckets.empty() &&
                         table->tablets.size() >= kLeastTablets * ranks_ && table->tablets.size() <= kMostTablets;
    return is_free ? table : nullptr;
  }

  /// By tablet; nullptr: the column has other values than integers of 64 bits, or a tablet cannot be opened.
  static std::shared_ptr<const ColumnRanges> RangesOf(const TableInfo& table, int column) {
    const SqlType& type = table.schema.columns[static_cast<size_t>(column)].type;
    // (Of intervals equal ones differ in their numbers.)
    if (type.storage() != StorageClass::kInt || type.id == TypeId::kInterval) return nullptr;
    const Result<std::shared_ptr<const ColumnRanges>> ranges = tessera::RangesOf(table, column);
    return ranges.ok() ? *ranges : nullptr;
  }

  /// Spans of about equal weight, with ends between tablets that have no value in common where there are such nearby.
  /// Empty: shares would be too different.
  std::vector<TabletSpan> Cut(const TableInfo& table, const ColumnRanges& ranges, double tolerance) const {
    std::vector<double> before = {0};  // by tablet: the weight of those before it
    for (const auto& tablet : table.tablets) before.push_back(before.back() + static_cast<double>(tablet->weight()));
    const double share = before.back() / static_cast<double>(ranks_), shift = share * tolerance / 2;
    std::vector<TabletSpan> spans;
    uint32_t first = 0;
    for (size_t r = 1; r <= ranks_; ++r) {
      const double wanted = share * static_cast<double>(r);
      uint32_t end = first;
      double best = -1;  // how far its end is off; more if values are on both sides
      const auto near = std::ranges::lower_bound(before.begin() + first, before.end(), wanted - 2 * shift);
      for (auto t = static_cast<uint32_t>(near - before.begin()); t <= table.tablets.size(); ++t) {
        if (best >= 0 && before[t] > wanted + 2 * shift) break;
        const bool inside = t > 0 && t < table.tablets.size();
        const double off = std::abs(before[t] - wanted) + (inside && ranges[t - 1].Meets(ranges[t]) ? shift : 0);
        if (best >= 0 && off >= best) continue;
        best = off;
        end = t;
      }
      if (r == ranks_) end = static_cast<uint32_t>(table.tablets.size());
      if (before[end] - before[first] > share * (1 + tolerance)) return {};
      spans.push_back({first, end});
      first = end;
    }
    return spans;
  }

  /// Whether no rank has many more of the rows that the section's predicates leave than another.
  bool LeavesEvenShares(size_t number, const TableInfo& table, const std::vector<TabletSpan>& spans) const {
    if (program_.sections[number].predicates.empty()) return true;
    vm::StringPool strings;
    const std::vector<vm::KeyRange> unknown(program_.joins.size());
    const vm::SectionEncoder encoder(program_, static_cast<int>(number), traits_.sections[number], &strings,
                                     &vm::MakeEntryMachine, unknown);
    double all = 0, most = 0;
    for (const TabletSpan& span : spans) {
      double live = 0;
      for (uint32_t t = span.first; t < span.end; ++t) {
        const Result<bool> none = encoder.RangesLeaveNone(*table.tablets[t]);
        if (!none.ok()) return false;
        if (!*none) live += table.tablets[t]->rows();
      }
      all += live;
      most = std::max(most, live);
    }
    return most * static_cast<double>(ranks_) <= all * kMostLive;
  }

  /// The spans that a section has, or may get by this column; nothing: it cannot have any.
  std::vector<TabletSpan> SpansFor(size_t number, int column, double tolerance) {
    const Section& s = program_.sections[number];
    if (!s.placement.spans.empty()) return s.placement.spans;
    const TableInfo* const table = FreeTable(s);
    const bool last = number + 1 == program_.sections.size();
    // Rows that stream to the master come from one rank after another. Join tables are on all ranks, or made on each.
    if (table == nullptr || s.sink == Section::Sink::kJoin ||
        (last && s.sink == Section::Sink::kRows && s.after.order.empty()))
      return {};
    const std::shared_ptr<const ColumnRanges> ranges = RangesOf(*table, column);
    if (ranges == nullptr) return {};
    std::vector<TabletSpan> spans = Cut(*table, *ranges, tolerance);
    if (!spans.empty() && !LeavesEvenShares(number, *table, spans)) spans.clear();
    return spans;
  }

  /// What probes a join table.
  struct Prober {
    size_t scan = 0;              ///< the section that scans the stored table from which the rows come
    std::vector<size_t> staying;  ///< the sections between, whose rows have to stay where they are, and the scan then
    std::vector<int> columns;     ///< of that table, of each key; -1: none
  };

  /// Where the rows that section `number` reads come from, if they can stay there. false: nowhere.
  bool FindScan(size_t number, Prober* prober) const {
    const Section& s = program_.sections[number];
    prober->scan = number;
    if (s.source_kind != Section::Source::kSection) return s.source_kind == Section::Source::kTable;
    const auto source = static_cast<size_t>(s.source);
    if (IsAppendedTo(program_, s.source) || !may_stay_[source] || !vm::MakesPlainRows(program_.sections[source]))
      return false;
    prober->staying.push_back(source);
    return FindScan(source, prober);
  }

  /// All that do; nothing if the table is used in another way.
  std::vector<Prober> ProbersOf(int join) const {
    std::vector<Prober> probers;
    const std::optional<std::vector<JoinProbe>> probes = ProbesOf(program_, traits_, join);
    if (!probes) return {};
    for (const JoinProbe& p : *probes) {
      if (!FindScan(p.section, &probers.emplace_back())) return {};
      probers.back().columns = p.columns;
    }
    return probers;
  }

  /// Gives a join table's section, and those that scan what probes the table, spans by one of the keys.
  void AlignBuilder(Section* builder) {
    const vm::JoinSpec& spec = program_.joins[static_cast<size_t>(builder->join)];
    const TableInfo* const table = FreeTable(*builder);
    if (table == nullptr || builder->placement.co_located || builder->keys == 0 || !vm::Info(spec.strategy).exchanges)
      return;
    const std::vector<int> built = StoredColumns(program_, traits_, *builder).OfRegisters(builder->keys);
    const std::vector<Prober> probers = ProbersOf(builder->join);
    if (!IsLarge(*table, probers)) return;
    for (size_t k = 0; k < built.size() && !probers.empty(); ++k) {
      if (built[k] >= 0 && AlignBy(k, built[k], *table, probers, builder)) return;
    }
  }

  /// Whether a build side of the table's rows is worth it that what probes it is scanned in another way.
  bool IsLarge(const TableInfo& table, const std::vector<Prober>& probers) const {
    return std::ranges::all_of(probers, [&](const Prober& p) {
      const TableInfo* const probing = FreeTable(program_.sections[p.scan]);
      return probing != nullptr && static_cast<double>(table.rows) >= kLeastBuilt * static_cast<double>(probing->rows);
    });
  }

  bool AlignBy(size_t key, int column, const TableInfo& table, const std::vector<Prober>& probers, Section* builder) {
    const std::shared_ptr<const ColumnRanges> ranges = RangesOf(table, column);
    if (ranges == nullptr) return false;
    std::map<size_t, std::vector<TabletSpan>> spans;  // by section that probes
    ColumnRanges wanted(ranks_);
    for (const Prober& p : probers) {
      if (p.columns[key] < 0) return false;
      spans[p.scan] = SpansFor(p.scan, p.columns[key], kToleranceOfJoins);
      if (spans[p.scan].empty()) return false;
      const std::shared_ptr<const ColumnRanges> keys = RangesOf(*FreeTable(program_.sections[p.scan]), p.columns[key]);
      if (keys == nullptr) return false;
      for (size_t r = 0; r < ranks_; ++r) wanted[r].Add(Hull(*keys, spans[p.scan][r]));
    }
    std::vector<TabletSpan> built = Overlapping(*ranges, wanted);
    const auto rows = static_cast<double>(table.rows);
    double most = 0, all = 0;
    for (const TabletSpan& span : built) {
      double of_rank = 0;
      for (uint32_t t = span.first; t < span.end; ++t) of_rank += table.tablets[t]->rows();
      most = std::max(most, of_rank);
      all += of_rank;
    }
    if (most > kMostBuilt * rows || all > kMostBuiltByAll * rows) return false;
    // What probes them goes with the rows that are left: of a rank without any nothing does.
    const auto number = static_cast<size_t>(builder - program_.sections.data());
    if (!LeavesEvenShares(number, table, built)) return false;
    builder->placement.spans = std::move(built);
    builder->placement.co_located = true;
    for (auto& [section, of_ranks] : spans) program_.sections[section].placement.spans = std::move(of_ranks);
    for (const Prober& p : probers) {
      for (const size_t section : p.staying) program_.sections[section].placement.co_located = true;
    }
    return true;
  }

  /// For each of the `wanted` ranges all tablets from the first to the last that have values in it.
  static std::vector<TabletSpan> Overlapping(const ColumnRanges& ranges, const ColumnRanges& wanted) {
    // The greatest value up to each tablet, and the least from it on: where tablets are in order, they lead to the place.
    std::vector<int64_t> greatest, least;
    for (const ColumnRange& r : ranges)
      greatest.push_back(std::max(r.high, greatest.empty() ? INT64_MIN : greatest.back()));
    for (size_t t = ranges.size(); t-- > 0;)
      least.push_back(std::min(ranges[t].low, least.empty() ? INT64_MAX : least.back()));
    std::ranges::reverse(least);
    std::vector<TabletSpan> spans;
    for (const ColumnRange& range : wanted) {
      auto first = static_cast<size_t>(std::ranges::lower_bound(greatest, range.low) - greatest.begin());
      auto end = static_cast<size_t>(std::ranges::upper_bound(least, range.high) - least.begin());
      while (first < end && !ranges[first].Meets(range)) ++first;
      while (first < end && !ranges[end - 1].Meets(range)) --end;
      spans.push_back(first < end ? TabletSpan{static_cast<uint32_t>(first), static_cast<uint32_t>(end)}
                                  : TabletSpan());
    }
    return spans;
  }

  /// Gives a section spans such that rows with equal keys, which are to meet, are on one rank.
  void Separate(size_t number, Section* s) {
    const TableInfo* const table = FreeTable(*s);
    if (table == nullptr || s->sink == Section::Sink::kJoin) return;
    for (const int column : StoredColumns(program_, traits_, *s).OfExchangeKeys()) {
      if (column < 0 || table->statistics[static_cast<size_t>(column)].null_count > 0) continue;
      const std::shared_ptr<const ColumnRanges> ranges = RangesOf(*table, column);
      std::vector<TabletSpan> spans = SpansFor(number, column, kToleranceOfGroups);
      if (ranges == nullptr || spans.empty() || !AreApart(*ranges, spans)) continue;
      s->placement.spans = std::move(spans);
      s->placement.co_located = true;
      return;
    }
  }

  static bool AreApart(const ColumnRanges& ranges, const std::vector<TabletSpan>& spans) {
    ColumnRanges hulls;
    for (const TabletSpan& span : spans) {
      const ColumnRange hull = Hull(ranges, span);
      if (std::ranges::any_of(hulls, [&](const ColumnRange& other) { return other.Meets(hull); })) return false;
      hulls.push_back(hull);
    }
    return true;
  }

  const Snapshot& snapshot_;
  const PlanOptions& options_;
  const size_t ranks_;
  Code& code_;
  Program& program_;
  const vm::ProgramTraits traits_;
  const std::vector<bool> may_stay_;  // by section
};

}  // namespace

void AssignSpans(const Snapshot& snapshot, const PlanOptions& options, Code* code) {
  Assignment assignment(snapshot, options, code);
  assignment.Joins();
  assignment.Groups();
}

}  // namespace tessera
