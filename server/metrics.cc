#include "server/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <vector>

#include "base/memory_budget.h"
#include "tablet/files/unpacked_chunks.h"

namespace tessera::server {
namespace {

/// Statements of other words are "other": a label has few values.
constexpr std::string_view kKinds[] = {"alter",  "analyze",  "begin",   "commit",  "copy",   "create", "delete",
                                       "drop",   "end",      "execute", "explain", "insert", "merge",  "prepare",
                                       "reset",  "rollback", "select",  "set",     "show",   "table",  "truncate",
                                       "update", "vacuum",   "values",  "with"};

void Head(std::string* out, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(*out), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

template <class T>
void Line(std::string* out, std::string_view name, T value) {
  fmt::format_to(std::back_inserter(*out), "{} {}\n", name, value);
}

template <class T>
void One(std::string* out, std::string_view name, std::string_view type, std::string_view help, T value) {
  Head(out, name, type, help);
  Line(out, name, value);
}

/// 0 if the system does not say.
size_t OpenFiles() {
  std::error_code error;
  size_t files = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error))
    ++files;
  return files;
}

void Caches(const Engine& engine, std::string* out) {
  std::vector<CacheReport> caches = {UnpackedReport()};
  if (const Gpu* const gpu = engine.gpu(); gpu != nullptr) caches.push_back(gpu->Cache());
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    Head(out, name, type, help);
    for (const CacheReport& cache : caches)
      Line(out, fmt::format("{}{{cache=\"{}\"}}", name, cache.name), value(cache));
  };
  each("tessera_cache_bytes", "gauge", "Bytes of columns in a cache.", [](const CacheReport& c) { return c.bytes; });
  each("tessera_cache_hits_total", "counter", "Pieces of columns that were found in a cache.",
       [](const CacheReport& c) { return c.hits; });
  each("tessera_cache_misses_total", "counter", "Pieces of columns that were not.",
       [](const CacheReport& c) { return c.misses; });
  each("tessera_cache_evictions_total", "counter", "Pieces that others took the place of.",
       [](const CacheReport& c) { return c.evictions; });
}

}  // namespace

void Metrics::Ended(std::string_view word, bool succeeded, double seconds, uint64_t rows) {
  const std::string_view kind = std::ranges::count(kKinds, word) > 0 ? word : "other";
  const size_t bucket = static_cast<size_t>(std::ranges::lower_bound(kBounds, seconds) - kBounds.begin());
  const std::lock_guard lock(mutex_);
  auto at = statements_.find(kind);
  if (at == statements_.end()) at = statements_.emplace(kind, Statements()).first;
  ++(succeeded ? at->second.succeeded : at->second.failed);
  ++taken_[bucket];
  seconds_ += seconds;
  rows_ += rows;
}

void Metrics::Failed(std::string_view sqlstate) {
  const std::lock_guard lock(mutex_);
  ++errors_[std::string(sqlstate.substr(0, 2))];
}

std::string Metrics::Text() const {
  std::string out;
  const uint64_t ended = ended_, connections = connections_;  // in this order: a difference is not below 0
  One(&out, "tessera_connections", "gauge", "Clients that are connected.", connections - ended);
  One(&out, "tessera_connections_total", "counter", "Clients that have connected.", connections);
  One(&out, "tessera_connections_refused_total", "counter", "Clients for which there was no room.", refused_.load());
  One(&out, "tessera_bytes_received_total", "counter", "Bytes from clients.", bytes_in_.load());
  One(&out, "tessera_bytes_sent_total", "counter", "Bytes to clients.", bytes_out_.load());
  {
    const std::lock_guard lock(mutex_);
    uint64_t all = 0;
    for (const uint64_t n : taken_) all += n;
    One(&out, "tessera_statements_running", "gauge", "Statements that run.", began_ - all);
    Head(&out, "tessera_statements_total", "counter", "Statements that have ended, by their first word.");
    for (const auto& [kind, n] : statements_) {
      Line(&out, fmt::format("tessera_statements_total{{kind=\"{}\",result=\"ok\"}}", kind), n.succeeded);
      Line(&out, fmt::format("tessera_statements_total{{kind=\"{}\",result=\"error\"}}", kind), n.failed);
    }
    Head(&out, "tessera_errors_total", "counter", "Errors that clients were told, by the class of their SQLSTATE.");
    for (const auto& [sqlstate, n] : errors_)
      Line(&out, fmt::format("tessera_errors_total{{class=\"{}\"}}", sqlstate), n);
    One(&out, "tessera_rows_total", "counter", "Rows that statements have returned or changed.", rows_);
    Head(&out, "tessera_statement_seconds", "histogram", "How long statements took, rows sent.");
    uint64_t so_far = 0;
    for (size_t i = 0; i < kBounds.size(); ++i) {
      so_far += taken_[i];
      Line(&out, fmt::format("tessera_statement_seconds_bucket{{le=\"{}\"}}", kBounds[i]), so_far);
    }
    Line(&out, "tessera_statement_seconds_bucket{le=\"+Inf\"}", all);
    Line(&out, "tessera_statement_seconds_sum", seconds_);
    Line(&out, "tessera_statement_seconds_count", all);
  }
  One(&out, "tessera_memory_bytes", "gauge", "Bytes that count against memory_limit.", MemoryUsed());
  One(&out, "tessera_memory_limit_bytes", "gauge", "SET memory_limit.", MemoryLimit());
  One(&out, "process_open_fds", "gauge", "Files and sockets that are open.", OpenFiles());
  Caches(*engine_, &out);
  return out;
}

}  // namespace tessera::server
