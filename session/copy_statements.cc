// COPY between tables and files or the standard streams.

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "mpi/cluster.h"
#include "session/copy_client.h"
#include "session/copy_text.h"
#include "session/program_run.h"
#include "session/standard_streams.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/columnar/columnar_writer.h"
#include "tablet/csv/csv_header.h"
#include "tablet/csv/csv_writer.h"
#include "tablet/load/columnar_options.h"
#include "tablet/load/partition_writer.h"
#include "tablet/load/row_writer.h"
#include "tablet/load/shared_load.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// The other ranks, with this session's settings.
class SessionRanks final : public LoadRanks {
 public:
  explicit SessionRanks(const SessionState& state) : state_(state) {}

  Result<bool> Load(const SharedLoad& load, SharedFile* file, TableLoad* own) override {
    if (load.file_bytes <= static_cast<uint64_t>(state_.settings.share_copy_above)) return false;
    TESSERA_ASSIGN(const Engine::RanksTurn turn, state_.engine->WaitForRanks(state_.cancel));
    ClusterLoad shared;
    shared.load = &load;
    shared.settings = ClusterSettingsOf(state_.settings);
    return state_.cluster->Load(shared, file, own);
  }

 private:
  const SessionState& state_;
};

/// A pipe, a terminal or the like: what is read of it is gone.
bool IsReadOnce(const std::string& file) {
  struct stat info;
  return stat(file.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

/// Where the rows come from, under a name that can be opened.
struct CopySource {
  std::string file;
  TemporaryFile spool;
  std::string name;  ///< for messages, instead of that of the spool file; "": the file's own
};

bool IsText(CopyForm form, const SessionState& state) {
  return form == CopyForm::kText || (form == CopyForm::kUnsaid && state.options.copy_client != nullptr);
}

/// What the client sends, as CSV.
Result<TemporaryFile> SpoolClient(CopyClient* client, const Statement& statement) {
  const CopyFromOptions& options = statement.copy.from;
  if (options.format.form == CopyForm::kBinary) {
    const std::vector<ColumnSchema>& columns = statement.target->schema.columns;
    std::vector<SqlType> types;
    for (const int c : options.columns) types.push_back(columns[static_cast<size_t>(c)].type);
    for (size_t c = 0; options.columns.empty() && c < columns.size(); ++c) types.push_back(columns[c].type);
    TESSERA_TRY(client->BeginReadBinary(types));
    return SpoolPieces([&](std::string* piece) { return client->Read(piece); });
  }
  TESSERA_TRY(
      client->BeginRead(options.columns.empty() ? statement.target->schema.columns.size() : options.columns.size()));
  if (options.format.form == CopyForm::kCsv)
    return SpoolPieces([&](std::string* piece) { return client->Read(piece); });
  CopyTextReader reader(TextFormatOf(options.format));
  bool more = true;
  return SpoolPieces([&](std::string* csv) -> Result<bool> {
    csv->clear();
    if (!more) return false;
    std::string text;
    TESSERA_ASSIGN(more, client->Read(&text));
    if (more) {
      reader.Read(text, csv);
    } else {
      reader.End(csv);
    }
    return true;
  });
}

/// What is in a file in the text format, as CSV.
Result<TemporaryFile> SpoolAsCsv(const CopyTextFormat& format, const TemporaryFile& text) {
  std::vector<std::string> pieces;
  CopyTextReader reader(format);
  TESSERA_TRY(text.ForEachPiece([&](const std::string& piece) {
    reader.Read(piece, &pieces.emplace_back());
    return Status::Ok();
  }));
  reader.End(&pieces.emplace_back());
  size_t at = 0;
  return SpoolPieces([&](std::string* csv) -> Result<bool> {
    if (at == pieces.size()) return false;
    *csv = std::move(pieces[at++]);
    return true;
  });
}

Result<CopySource> OpenSource(const SessionState& state, const Statement& statement) {
  if (statement.copy.from.format.form == CopyForm::kBinary && state.options.copy_client == nullptr)
    return NoBinaryCopy();
  CopySource source;
  source.file = statement.copy.file;
  if (statement.copy.file.empty() && state.options.copy_client != nullptr) {
    TESSERA_ASSIGN(source.spool, SpoolClient(state.options.copy_client, statement));
    source.name = state.options.copy_client->rows_name();
  } else if (statement.copy.file.empty()) {
    if (!state.options.standard_input_is_free) {
      return SqlError("COPY FROM STDIN cannot read standard input: the statements come from there", -1,
                      "Give the statement with -c or in a file with -f.");
    }
    TESSERA_ASSIGN(source.spool, SpoolStandardInput());
    source.name = "standard input";
    if (statement.copy.from.format.form == CopyForm::kText) {
      TESSERA_ASSIGN(source.spool, SpoolAsCsv(TextFormatOf(statement.copy.from.format), source.spool));
    }
  } else if (statement.copy.from.format.header && IsReadOnce(statement.copy.file)) {
    // The header says in which order the columns are before anything is loaded.
    TESSERA_ASSIGN(source.spool, SpoolPipe(statement.copy.file));
    source.name = QuoteForMessage(statement.copy.file);
  }
  if (!source.name.empty()) source.file = source.spool.path();
  return source;
}

Result<std::unique_ptr<RowWriter>> OpenFileWriter(const std::string& file, const Statement& statement,
                                                  const std::vector<vm::ResultColumn>& columns) {
  if (!statement.setting.empty()) {
    std::vector<ColumnarColumn> written;
    for (const vm::ResultColumn& c : columns) written.push_back({c.name, c.type});
    return OpenColumnarWriter(file, ColumnarOptions::Of(statement.setting), std::move(written));
  }
  std::vector<std::string> names;
  for (const vm::ResultColumn& c : columns) names.push_back(c.name);
  TESSERA_ASSIGN(std::unique_ptr<CsvWriter> writer, CsvWriter::Create(file, statement.copy.to, names));
  return std::unique_ptr<RowWriter>(std::move(writer));
}

std::string EndOfFiles(const Statement& statement) {
  if (statement.setting.empty()) return ".csv";
  const ColumnarOptions options = ColumnarOptions::Of(statement.setting);
  if (options.format == FileFormat::kParquet) return ".parquet";
  return options.stream ? ".arrows" : ".arrow";
}

/// One file, or those of the folders of PARTITION_BY.
Result<std::unique_ptr<RowWriter>> OpenWriter(const std::string& file, const Statement& statement,
                                              const std::vector<vm::ResultColumn>& columns) {
  if (statement.copy.partition_by.empty()) return OpenFileWriter(file, statement, columns);
  std::vector<std::pair<int, std::string>> keys;
  std::vector<vm::ResultColumn> written;
  for (const int c : statement.copy.partition_by) keys.emplace_back(c, columns[static_cast<size_t>(c)].name);
  for (size_t c = 0; c < columns.size(); ++c) {
    if (std::ranges::count(statement.copy.partition_by, static_cast<int>(c)) == 0) written.push_back(columns[c]);
  }
  return PartitionWriter::Create(
      file, std::move(keys), EndOfFiles(statement),
      [&statement, written](const std::string& path) { return OpenFileWriter(path, statement, written); });
}

}  // namespace

Status CopyFrom(SessionState* state, const Statement& statement, ResultWriter* out) {
  CopyFromOptions options = statement.copy.from;
  options.threads = state->threads();
  options.zone = state->settings.timezone;
  options.cancel = &state->cancel;
  options.schema = &statement.target->schema;
  if (statement.copy.file.empty() && IsText(options.format.form, *state))
    CopyTextReader(TextFormatOf(options.format)).SetFormat(&options.format);
  TESSERA_ASSIGN(const CopySource source, OpenSource(*state, statement));
  const auto named = [&](const Status& error) {
    return source.name.empty() ? error : NameSource(error, source.file, source.name);
  };
  if (options.format.header) {
    std::string warning;
    const Status status =
        FollowHeader(source.file, statement.target->schema, statement.value == "match", &options, &warning);
    if (!status.ok()) return named(status);
    state->running.warning = source.name.empty() ? warning : NameSource(warning, source.file, source.name);
  }
  if (state->progress) {
    options.progress = [state, what = ShownName(statement.table)](uint64_t done, uint64_t all) {
      state->progress({what.c_str(), done, all, ProgressUnit::kBytes});
    };
  }
  SessionRanks ranks(*state);
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, statement.table));
  const bool shared = state->cluster != nullptr && !IsTemporaryName(statement.table);
  if (shared && source.name.empty()) options.ranks = &ranks;
  std::string tag;
  tag.reserve(kTagBytes);
  std::atomic<uint64_t> ignored{0};
  options.ignored = &ignored;
  Result<uint64_t> rows = database->CopyFrom(statement.table, source.file, options);
  if (!rows.ok()) return named(rows.status());
  state->running.timing.rows = *rows;
  WarnOfIgnored(state, ignored);
  fmt::format_to(std::back_inserter(tag), "COPY {}", *rows);
  return out->Done(tag);
}

namespace {

/// COPY TO STDOUT in the text format.
Status CopyTextTo(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
  constexpr size_t kPiece = size_t{64} << 10, kPieceRows = 512;
  const CopyTextFormat format = TextFormatOf(compiled.statement.copy.to);
  CopyClient* const client = state->options.copy_client;
  std::string text;
  if (compiled.statement.copy.to.header) {
    for (const vm::ResultColumn& c : ResultColumns(compiled)) {
      if (!text.empty()) text += format.delimiter;
      AppendCopyField(c.name, format.delimiter, &text);
    }
    text += '\n';
  }
  uint64_t rows = 0;
  bool begun = false;
  // (A client learns of an error also after rows. What the shell prints has all of them or none.)
  const auto write = [&]() -> Status {
    if (client == nullptr) return Status::Ok();
    if (!std::exchange(begun, true)) TESSERA_TRY(client->BeginWrite(ResultColumns(compiled).size()));
    return text.empty() ? Status::Ok() : client->Write(std::exchange(text, {}));
  };
  // The texts are made by all threads: one makes some 200 MB of them a second, and a client takes more.
  const auto append = [&](RowBatch&& batch) -> Status {
    rows += batch.rows;
    ThreadPool* const pool = state->running.executor != nullptr ? state->running.executor->pool() : nullptr;
    const size_t at_once = kPieceRows * (client == nullptr ? 1 : 16 * Workers(pool));
    for (size_t begin = 0; begin < batch.rows; begin += at_once) {
      const size_t count = std::min(at_once, batch.rows - begin);
      std::vector<std::string> pieces((count + kPieceRows - 1) / kPieceRows);
      TESSERA_TRY(ForEach(pool, pieces.size(), [&](size_t piece) {
        const size_t first = begin + piece * kPieceRows, last = std::min(first + kPieceRows, begin + count);
        AppendCopyText(batch, first, last, format, &pieces[piece]);
        return Status::Ok();
      }));
      for (std::string& piece : pieces) {
        if (text.empty()) {
          text = std::move(piece);
        } else {
          text += piece;
        }
        if (text.size() >= kPiece) TESSERA_TRY(write());
      }
    }
    return Status::Ok();
  };
  TESSERA_TRY(RunQuery(state, compiled, snapshot, append));
  TESSERA_TRY(write());
  if (client != nullptr) TESSERA_TRY(client->EndWrite());
  state->running.timing.rows = rows;
  return client != nullptr ? out->Done(fmt::format("COPY {}", rows)) : out->Text(text);
}

/// COPY TO STDOUT in the binary format.
Status CopyBinaryTo(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
  CopyClient* const client = state->options.copy_client;
  if (client == nullptr) return NoBinaryCopy();
  uint64_t rows = 0;
  bool begun = false;
  const auto begin = [&] {
    return std::exchange(begun, true) ? Status::Ok() : client->BeginWriteBinary(ResultColumns(compiled).size());
  };
  const auto write = [&](RowBatch&& batch) -> Status {
    rows += batch.rows;
    TESSERA_TRY(begin());
    return client->WriteBinary(batch);
  };
  TESSERA_TRY(RunQuery(state, compiled, snapshot, write));
  TESSERA_TRY(begin());
  TESSERA_TRY(client->EndWriteBinary());
  state->running.timing.rows = rows;
  return out->Done(fmt::format("COPY {}", rows));
}

}  // namespace

Status CopyTo(SessionState* state, const Compiled& compiled, const Snapshot& snapshot, ResultWriter* out) {
  const Statement& statement = compiled.statement;
  CopyClient* const client = statement.copy.file.empty() ? state->options.copy_client : nullptr;
  if (statement.copy.to.form == CopyForm::kBinary) return CopyBinaryTo(state, compiled, snapshot, out);
  if (statement.copy.file.empty() && IsText(statement.copy.to.form, *state))
    return CopyTextTo(state, compiled, snapshot, out);
  std::string file = statement.copy.file;
  TemporaryFile spool;
  // To the standard output through a file: one writer makes all CSV, and an error leaves no half of it on the output.
  if (file.empty()) {
    TESSERA_ASSIGN(spool, TemporaryFile::Create());
    file = spool.path();
  }
  TESSERA_ASSIGN(const std::unique_ptr<RowWriter> writer, OpenWriter(file, statement, ResultColumns(compiled)));
  uint64_t rows = 0;
  TESSERA_TRY(RunQuery(state, compiled, snapshot, [&](RowBatch&& batch) {
    rows += batch.rows;
    return writer->Append(batch);
  }));
  TESSERA_TRY(writer->Close());
  state->running.timing.rows = rows;
  if (client != nullptr) {
    TESSERA_TRY(client->BeginWrite(ResultColumns(compiled).size()));
    TESSERA_TRY(spool.ForEachPiece([&](std::string text) { return client->Write(std::move(text)); }));
    TESSERA_TRY(client->EndWrite());
  } else if (statement.copy.file.empty()) {
    return spool.ForEachPiece([&](const std::string& text) { return out->Text(text); });
  }
  return out->Done(fmt::format("COPY {}", rows));
}

}  // namespace tessera
