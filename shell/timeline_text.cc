#include "shell/timeline_text.h"

#include <fmt/format.h>

#include "shell/json_quotes.h"

namespace tessera {
namespace {

/// Adjacent events in the file are on lines of their own.
constexpr const char* kTrackNames[] = {"statements", "GPU"};

std::string SectionName(const vm::RunStatistics& statistics, int section) {
  for (const vm::SectionStatistics& s : statistics.sections) {
    if (s.section == section) return s.label;
  }
  return fmt::format("section {}", section);
}

}  // namespace

void TimelineText::Begin(std::string* out) {
  *out += begun_ ? ",\n" : "[\n";
  begun_ = true;
}

void TimelineText::NameRank(const vm::RankStatistics& rank, std::string* out) {
  if (!named_.insert(rank.rank).second) return;
  std::string name;
  AppendInJsonQuotes(fmt::format("rank {}, {}", rank.rank, rank.host), &name);
  Begin(out);
  *out += fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", rank.rank, name);
  for (size_t track = 0; track < std::size(kTrackNames); ++track) {
    Begin(out);
    *out += fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", rank.rank,
                        track, kTrackNames[track]);
  }
}

void TimelineText::AddSpan(Place place, const std::string& name, int64_t begin, int64_t end, const StatementRun* run,
                           std::string* out) {
  Begin(out);
  *out += R"({"ph":"X","name":)";
  AppendInJsonQuotes(name, out);
  *out += fmt::format(R"(,"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f})", place.rank, place.track,
                      static_cast<double>(begin - origin_) * 1e-3, static_cast<double>(end - begin) * 1e-3);
  if (run != nullptr) *out += fmt::format(R"(,"args":{{"statement":{},"run":{}}})", run->number, run->run);
  *out += "}";
}

void TimelineText::AddRank(const StatementRun& run, const vm::RunStatistics& statistics, const vm::RankStatistics& rank,
                           int64_t shift, std::string* out) {
  std::vector<PhaseSpan> spans, kernels;
  for (const PhaseSpan& s : rank.spans) (s.track == 0 ? spans : kernels).push_back(s);
  if (spans.empty()) return;
  NameRank(rank, out);
  const Place thread{rank.rank, 0};
  const std::string name = run.name.empty() ? fmt::format("statement {}", run.number) : run.name;
  AddSpan(thread, name, spans.front().begin + shift, spans.back().end + shift, &run, out);
  for (size_t i = 0; i < spans.size();) {
    size_t end = i;  // of the stretch that belongs to one section
    while (end + 1 < spans.size() && spans[end + 1].section == spans[i].section) ++end;
    if (spans[i].section >= 0) {
      AddSpan(thread, SectionName(statistics, spans[i].section), spans[i].begin + shift, spans[end].end + shift,
              nullptr, out);
    }
    for (; i <= end; ++i)
      AddSpan(thread, NameOf(spans[i].phase), spans[i].begin + shift, spans[i].end + shift, nullptr, out);
  }
  for (const PhaseSpan& k : kernels) {
    AddSpan({rank.rank, k.track}, SectionName(statistics, k.section), k.begin + shift, k.end + shift, nullptr, out);
  }
}

std::string TimelineText::Add(const StatementRun& run, const vm::RunStatistics& statistics) {
  std::string out;
  if (statistics.sections.empty() || statistics.ranks.empty() || statistics.ranks[0].spans.empty()) return out;
  const vm::RankStatistics& master = statistics.ranks[0];
  if (origin_ == 0) origin_ = master.spans.front().begin;
  for (const vm::RankStatistics& rank : statistics.ranks)
    AddRank(run, statistics, rank, rank.host == master.host ? 0 : master.agreed - rank.agreed, &out);
  return out;
}

std::string TimelineText::End() { return begun_ ? "\n]\n" : "[]\n"; }

}  // namespace tessera
