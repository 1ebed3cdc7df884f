#include "shell/run_reports.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "tablet/files/io_error.h"

namespace tessera {

RunReports::RunReports(const CommandLine& line)
    : format_(line.measure.statistics.value_or(StatisticsFormat::kCsv)),
      statistics_{line.measure.statistics_file, -1, line.measure.statistics.has_value()},
      trace_{line.measure.trace_file, -1, !line.measure.trace_file.empty()} {}

RunReports::~RunReports() {
  for (const File* file : {&statistics_, &trace_}) {
    if (file->fd >= 0 && !file->name.empty()) close(file->fd);
  }
}

Status RunReports::Add(const StatementRun& run, const vm::RunStatistics& statistics) {
  std::string text = RankStatisticsText(format_, run, statistics);
  if (first_) text = RankStatisticsHeader(format_) + text;
  first_ = false;
  Status written = Write(text, &statistics_);
  Status traced = trace_.wanted ? Write(timeline_.Add(run, statistics), &trace_) : Status::Ok();
  return written.ok() ? traced : written;
}

Status RunReports::End() { return Write(timeline_.End(), &trace_); }

Status RunReports::Write(std::string_view text, File* file) {
  if (!file->wanted) return Status::Ok();
  if (file->name.empty()) {
    file->fd = STDERR_FILENO;
  } else if (file->fd < 0) {
    file->fd = open(file->name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_TRUNC, 0666);
  }
  while (file->fd >= 0 && !text.empty()) {
    const ssize_t n = write(file->fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.remove_prefix(static_cast<size_t>(n));
  }
  if (file->fd >= 0 && text.empty()) return Status::Ok();
  file->wanted = false;
  return IoError("could not write", file->name.empty() ? "standard error" : file->name, errno);
}

}  // namespace tessera
