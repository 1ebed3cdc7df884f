#include "shell/rank_statistics_text.h"

#include <fmt/format.h>

#include <vector>

#include "base/version.h"
#include "shell/json_quotes.h"

namespace tessera {
namespace {

/// One value of a line.
struct Field {
  enum class Kind { kNumber, kText, kTraffic, kNothing };
  const char* name;
  Kind kind = Kind::kNothing;
  std::string text;                                     ///< kNumber, kText
  std::vector<std::pair<size_t, uint64_t>> bytes = {};  ///< kTraffic: the other rank, and bytes
};

Field Number(const char* name, uint64_t n) { return {name, Field::Kind::kNumber, std::to_string(n)}; }
Field Text(const char* name, const std::string& text) { return {name, Field::Kind::kText, text}; }
Field Nothing(const char* name) { return {name, Field::Kind::kNothing, ""}; }
Field Time(const char* name, double milliseconds) {
  return {name, Field::Kind::kNumber, fmt::format("{:.3f}", milliseconds)};
}
Field Partners(const char* name, const Account& account, uint64_t Traffic::*bytes) {
  Field field{name, Field::Kind::kTraffic, ""};
  for (size_t r = 0; r < account.traffic.size(); ++r) {
    if (account.traffic[r].*bytes > 0) field.bytes.emplace_back(r, account.traffic[r].*bytes);
  }
  return field;
}

/// The columns of all lines. `section`: nullptr for the line of the whole statement.
std::vector<Field> Fields(const StatementRun& run, const vm::RankStatistics& r, const vm::SectionAccount* section,
                          const std::string& label) {
  const Account& account = section == nullptr ? r.account : section->account;
  const Traffic traffic = account.AllTraffic();
  const auto whole = [&](const char* name, uint64_t n) { return section == nullptr ? Number(name, n) : Nothing(name); };
  const auto work = [&](const char* name, double ms) { return section == nullptr ? Time(name, ms) : Nothing(name); };
  std::vector<Field> fields = {
      Number("statement", run.number),
      Text("name", run.name),
      Number("run", run.run),
      Text("host", r.host),
      Text("device", r.device),
      Number("threads", static_cast<uint64_t>(r.threads)),
      Text("version", kVersion),
      section == nullptr ? Nothing("section") : Number("section", static_cast<uint64_t>(section->section)),
      Text("label", label),
      Number("rank", static_cast<uint64_t>(r.rank)),
      section == nullptr ? Number("rows_scanned", r.rows_scanned) : Number("rows_scanned", section->rows_in),
      Number("rows_out", section == nullptr ? r.rows_out : section->rows_out),
      Number("tablets", section == nullptr ? r.tablets : section->tablets),
      Number("bytes_read", section == nullptr ? r.bytes_read : section->bytes_read),
      whole("bytes_transferred", r.bytes_transferred),
      Number("bytes_sent", traffic.sent),
      Number("bytes_received", traffic.received),
      Partners("sent_to", account, &Traffic::sent),
      Partners("received_from", account, &Traffic::received),
      Number("collectives", account.collectives),
      whole("bytes_scattered", r.bytes_scattered),
      whole("memory_peak", r.memory_peak),
      whole("temporary_peak", r.temporary_peak)};
#define PHASE(Name, Column, Explained) fields.push_back(Time(Column "_ms", account.Milliseconds(Phase::k##Name)));
#include "base/phases.def"
#undef PHASE
  fields.push_back(Time("total_ms", section == nullptr ? r.total : account.Milliseconds()));
  fields.push_back(work("read_work_ms", r.read_work));
  fields.push_back(work("transfer_work_ms", r.transfer_work));
  fields.push_back(work("kernel_work_ms", r.kernel_work));
  return fields;
}

std::string InCsvQuotes(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string InJsonQuotes(const std::string& text) {
  std::string out;
  AppendInJsonQuotes(text, &out);
  return out;
}

std::string CsvText(const Field& field) {
  if (field.kind == Field::Kind::kTraffic) {
    std::string out;
    for (const auto& [rank, bytes] : field.bytes) out += fmt::format("{}{}:{}", out.empty() ? "" : " ", rank, bytes);
    return out;
  }
  const bool quoted = field.text.find_first_of(",\"\r\n") != std::string::npos;
  return quoted ? InCsvQuotes(field.text) : field.text;
}

std::string JsonText(const Field& field) {
  switch (field.kind) {
    case Field::Kind::kNumber:
      return field.text;
    case Field::Kind::kText:
      return InJsonQuotes(field.text);
    case Field::Kind::kNothing:
      return "null";
    case Field::Kind::kTraffic:
      break;
  }
  std::string out;
  for (const auto& [rank, bytes] : field.bytes) out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", rank, bytes);
  return "{" + out + "}";
}

std::string LineText(StatisticsFormat format, const std::vector<Field>& fields) {
  std::string line;
  for (const Field& field : fields) {
    if (!line.empty()) line += ",";
    line += format == StatisticsFormat::kJson ? fmt::format("\"{}\":{}", field.name, JsonText(field)) : CsvText(field);
  }
  return format == StatisticsFormat::kJson ? "{" + line + "}\n" : line + "\n";
}

std::string LabelOf(const vm::RunStatistics& statistics, int section) {
  for (const vm::SectionStatistics& s : statistics.sections) {
    if (s.section == section) return s.label;
  }
  return "";
}

/// Whether the line would show anything but zeros.
bool HasDone(const vm::SectionAccount& s) {
  return s.rows_in > 0 || s.rows_out > 0 || s.account.Milliseconds() >= 0.0005;
}

}  // namespace

std::string RankStatisticsHeader(StatisticsFormat format) {
  std::string line;
  if (format == StatisticsFormat::kJson) return line;
  for (const Field& field : Fields({}, {}, nullptr, "")) line += std::string(line.empty() ? "" : ",") + field.name;
  return line + "\n";
}

std::string RankStatisticsText(StatisticsFormat format, const StatementRun& run, const vm::RunStatistics& statistics) {
  std::string out;
  if (statistics.sections.empty()) return out;
  for (const vm::RankStatistics& rank : statistics.ranks) {
    out += LineText(format, Fields(run, rank, nullptr, ""));
    for (const vm::SectionAccount& s : rank.sections) {
      if (HasDone(s)) out += LineText(format, Fields(run, rank, &s, LabelOf(statistics, s.section)));
    }
  }
  return out;
}

}  // namespace tessera
