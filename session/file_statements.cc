// Statements that read files: they are compiled, the files are read for them, and they are compiled again.

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "mpi/cluster.h"
#include "session/standard_streams.h"
#include "session/statements.h"
#include "session/table_rights.h"
#include "tablet/file_tables.h"

namespace tessera {
namespace {

/// Which columns of the program's table `number` its sections read.
std::vector<bool> ColumnsRead(const vm::Program& program, size_t number) {
  std::vector<bool> read;
  for (const vm::Section& s : program.sections) {
    if (s.source_kind != vm::Section::Source::kTable || static_cast<size_t>(s.source) != number) continue;
    for (const vm::Slot& slot : s.slots) {
      const auto column = static_cast<size_t>(slot.column);
      if (read.size() <= column) read.resize(column + 1);
      read[column] = true;
    }
  }
  return read;
}

CopyFromOptions OptionsOf(SessionState* state, const std::string& what) {
  CopyFromOptions options;
  options.threads = state->threads();
  options.zone = state->settings.timezone;
  options.cancel = &state->cancel;
  if (state->progress) {
    options.progress = [state, what](uint64_t done, uint64_t all) {
      state->progress({what.c_str(), done, all, ProgressUnit::kBytes});
    };
  }
  return options;
}

/// The file whose rows, all of them and as they are, are those of the statement; nullptr: they are others.
const TableInfo* WholeFileOf(const SessionState& state, const Statement& s) {
  const bool stores = s.kind == Statement::Kind::kCreateTable || s.kind == Statement::Kind::kInsert;
  if (!stores || s.explain.wanted || s.query == nullptr || s.change.returning != nullptr) return nullptr;
  const Query& q = *s.query;
  const bool plain = q.relations.size() == 1 && q.relations[0].table != nullptr && q.conjuncts.empty() && !q.grouped &&
                     !q.distinct && q.order_by.empty() && q.limit < 0 && q.offset == 0 && q.union_all.empty() &&
                     q.windows.empty() && !q.folds() && q.repeat < 0;
  if (!plain || !state.files.Has(q.relations[0].table->id)) return nullptr;
  const TableInfo& table = *q.relations[0].table;
  const TableSchema& stored = s.kind == Statement::Kind::kInsert ? s.target->schema : s.definition.schema;
  const size_t columns = table.schema.columns.size();
  if (q.outputs.size() != columns || stored.columns.size() != columns) return nullptr;
  for (size_t c = 0; c < columns; ++c) {
    const Expr& e = *q.outputs[c].expr;
    if (e.kind != Expr::Kind::kColumn || e.column != static_cast<int>(c)) return nullptr;
    if (stored.columns[c].type != table.schema.columns[c].type) return nullptr;
  }
  return &table;
}

/// How many of the first rows of the only table that the statement reads are enough: those of a LIMIT; UINT64_MAX: all are
/// needed.
uint64_t FirstRowsOf(const Statement& s, const vm::Program& program) {
  if (s.kind != Statement::Kind::kSelect || s.query == nullptr || program.sections.size() != 1) return UINT64_MAX;
  const Query& q = *s.query;
  const bool plain = q.relations.size() == 1 && q.relations[0].table != nullptr && q.conjuncts.empty() && !q.grouped &&
                     !q.distinct && q.order_by.empty() && q.union_all.empty() && q.windows.empty() && !q.folds() &&
                     q.repeat < 0;
  if (!plain || q.limit < 0 || !program.sections[0].predicates.empty()) return UINT64_MAX;
  return static_cast<uint64_t>(q.limit) + static_cast<uint64_t>(q.offset);
}

Result<bool> ReadFiles(SessionState* state, const Statement& statement, const vm::Program& program) {
  const uint64_t rows = FirstRowsOf(statement, program);
  bool any = false;
  for (size_t i = 0; i < program.tables.size(); ++i) {
    if (!state->files.Has(program.tables[i].id)) continue;
    const CopyFromOptions options = OptionsOf(state, program.tables[i].name);
    TESSERA_ASSIGN(const bool read, state->files.Load(program.tables[i].id, ColumnsRead(program, i), options, rows));
    any = any || read;
    if (program.joins.empty()) continue;
    TESSERA_ASSIGN(const bool any_key, state->files.FindKeys(program.tables[i].id, ColumnsRead(program, i), options));
    any = any || any_key;
  }
  return any;
}

}  // namespace

Result<Compiled> CompileStatement(SessionState* state, std::string_view sql, const PlanOptions& options,
                                  std::shared_ptr<const Snapshot>* snapshot) {
  const std::shared_ptr<const Snapshot> tables = *snapshot;
  for (;;) {
    const RandomState random = state->random;
    TESSERA_ASSIGN(Compiled compiled, Compile(sql, *tables, options, &state->random));
    TESSERA_TRY(CheckStatementRights(state, *tables, compiled));
    if (std::string& file = compiled.statement.copy.file; !file.empty()) {
      TESSERA_ASSIGN(file, AllowedFile(*state, file));
    }
    if (state->files.used().empty()) return compiled;
    bool read = false;
    if (compiled.program != nullptr && WholeFileOf(*state, compiled.statement) == nullptr) {
      TESSERA_ASSIGN(read, ReadFiles(state, compiled.statement, *compiled.program));
    }
    auto with_files = std::make_shared<Snapshot>(*tables);
    with_files->files = state->files.used();
    *snapshot = std::move(with_files);
    if (!read) {
      WarnOfIgnored(state, state->files.ignored());
      return compiled;
    }
    state->random = random;
  }
}

Status FilesRefused() {
  return {ErrorKind::kInsufficientPrivilege, "this session may not read or write files",
          "COPY ... FROM STDIN and TO STDOUT send the rows over the connection."};
}

Result<std::string> AllowedFile(const SessionState& state, const std::string& name) {
  namespace fs = std::filesystem;
  if (!state.options.files) return FilesRefused();
  if (state.options.files_folder.empty()) return name;
  std::error_code error;
  const fs::path folder = fs::canonical(state.options.files_folder, error);
  // (Also of names with *: what they stand for is looked at again.)
  const fs::path file = error ? fs::path() : fs::weakly_canonical(folder / name, error);
  const bool is_inside = !error && std::ranges::mismatch(folder, file).in1 == folder.end();
  if (is_inside) return file.string();
  return Status(ErrorKind::kInsufficientPrivilege, "the file is not where this session may read and write files",
                "A name without / in front is one in the folder that the server's --files-dir says.");
}

void SetSpoolOfFiles(SessionState* state) {
  state->files.SetInPlace(state->options.cluster == nullptr || state->options.cluster->ranks() == 1);
  state->files.SetShared(state->engine->kept_files());
  if (!state->options.files || !state->options.files_folder.empty())
    state->files.SetNaming([state](const std::string& name) { return AllowedFile(*state, name); });
  auto spools = std::make_shared<std::vector<TemporaryFile>>();
  const bool is_free = state->options.standard_input_is_free;
  state->files.SetSpool([spools, is_free](const std::string& path) -> Result<std::string> {
    const bool is_input = path == "-" || path == "/dev/stdin";
    if (is_input && !is_free) {
      return SqlError("FROM cannot read standard input: the statements come from there", -1,
                      "Give the statement with -c or in a file with -f.");
    }
    TESSERA_ASSIGN(TemporaryFile spool, is_input ? SpoolStandardInput() : SpoolPipe(path));
    spools->push_back(std::move(spool));
    return spools->back().path();
  });
}

void WarnOfIgnored(SessionState* state, uint64_t ignored) {
  if (ignored == 0) return;
  if (!state->running.warning.empty()) state->running.warning += '\n';
  state->running.warning += std::to_string(ignored) + (ignored == 1 ? " record" : " records") + " with errors left out";
}

std::unique_ptr<FileReader> WholeFile(SessionState* state, const Statement& statement, CopyFromOptions* options) {
  const TableInfo* const file = WholeFileOf(*state, statement);
  if (file == nullptr) return nullptr;
  *options = OptionsOf(state, file->schema.name);
  options->rules = statement.change.rules;
  return state->files.ReadAll(file->id, *options);
}

}  // namespace tessera
