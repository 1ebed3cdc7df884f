// CREATE, ALTER and DROP SEQUENCE, and the values of sequences.
#include <algorithm>
#include <vector>

#include "compiler/query/bound_query.h"
#include "compiler/query/nearest_name.h"
#include "session/same_snapshot.h"
#include "session/session_sequences.h"
#include "session/session_state.h"
#include "session/statements.h"
#include "session/temporary_tables.h"
#include "session/transaction.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

Status Absent(const std::string& name, const Sequences& known) {
  std::vector<std::string_view> names;
  for (const Sequence& sequence : known) names.push_back(sequence.name);
  const std::string nearest = NearestName(name, names);
  return SqlError(ErrorKind::kUndefinedTable, "sequence \"" + name + "\" does not exist", -1,
                  nearest.empty() ? "CREATE SEQUENCE makes one." : "Perhaps you meant sequence \"" + nearest + "\".");
}

}  // namespace

/// (What else there is of a sequence may have changed in the same statement.)
void SessionSequences::TakeValue(Sequence* sequence) const {
  const auto changed = pending_.find(sequence->name);
  if (changed == pending_.end()) return;
  sequence->value = changed->second.value;
  sequence->was_given = changed->second.was_given;
}

Result<Sequences> SessionSequences::All() {
  TESSERA_ASSIGN(CatalogNames names, state_.database->ReadNames());
  Sequences all = std::move(names.sequences);
  if (state_.temporaries.database != nullptr) {
    TESSERA_ASSIGN(const CatalogNames of_session, state_.temporaries.database->ReadNames());
    all.insert(all.end(), of_session.sequences.begin(), of_session.sequences.end());
  }
  for (Sequence& sequence : all) {
    TakeValue(&sequence);
  }
  return all;
}

template <class F>
Status SessionSequences::Change(const std::string& name, F f) {
  TESSERA_ASSIGN(Database* const changed_database, DatabaseOf(&state_, name));
  Database& database = *changed_database;
  if (state_.transaction.is_open && IsTemporaryName(name)) {
    Statement of_session;  // as an INSERT into a temporary table
    of_session.kind = Statement::Kind::kInsert;
    of_session.table = name;
    TESSERA_TRY(BeginChange(&state_, &of_session, nullptr).status());
  } else if (state_.transaction.is_open && !database.InTransaction()) {
    if (state_.transaction.reads_only)
      return SqlError(ErrorKind::kReadOnlyTransaction, "cannot change a sequence in a read-only transaction", -1,
                      "Enter COMMIT first.");
    const std::shared_ptr<const Snapshot> seen = state_.transaction.snapshot;
    TESSERA_TRY(BeginChange(&state_, nullptr, nullptr).status());
    TESSERA_ASSIGN(std::shared_ptr<const Snapshot> now, database.Read());
    TESSERA_ASSIGN(now, WithOlder(std::move(now), &state_.transaction.older));
    if (seen != nullptr && !IsSame(*seen, *now))  // the statement is being compiled for that one
      return {ErrorKind::kSerializationFailure, "could not serialize access: another session has changed the database",
              "Run the transaction again."};
  }
  if (database.InTransaction()) {
    auto changed = pending_.find(name);
    if (changed == pending_.end()) {
      TESSERA_ASSIGN(const CatalogNames names, database.ReadNames());
      const Sequence* const sequence = FindSequence(names.sequences, name);
      if (sequence == nullptr) return Absent(name, names.sequences);
      changed = pending_.emplace(name, *sequence).first;
    }
    return f(&changed->second);
  }
  return database.ChangeNames([&](CatalogNames* names) -> Status {
    const auto found = std::ranges::find(names->sequences, name, &Sequence::name);
    return found != names->sequences.end() ? f(&*found) : Absent(name, names->sequences);
  });
}

Result<int64_t> SessionSequences::Next(const std::string& name) {
  const std::lock_guard lock(mutex_);
  int64_t value = 0;
  TESSERA_TRY(Change(name, [&](Sequence* sequence) -> Status {
    TESSERA_ASSIGN(value, NextOf(sequence));
    return Status::Ok();
  }));
  current_[name] = value;
  last_ = name;
  return value;
}

Result<int64_t> SessionSequences::Current(const std::string& name) {
  TESSERA_ASSIGN(const Sequences all, All());
  if (FindSequence(all, name) == nullptr) return Absent(name, all);
  if (const auto found = current_.find(name); found != current_.end()) return found->second;
  return SqlError(ErrorKind::kNotInPrerequisiteState,
                  "currval of sequence \"" + name + "\" is not yet defined in this session", -1, "Call nextval first.");
}

Result<int64_t> SessionSequences::Last() {
  if (!last_.empty()) return current_[last_];
  return SqlError(ErrorKind::kNotInPrerequisiteState, "lastval is not yet defined in this session", -1,
                  "Call nextval first.");
}

Status SessionSequences::Set(const std::string& name, int64_t value, bool was_given) {
  const std::lock_guard lock(mutex_);
  TESSERA_TRY(Change(name, [&](Sequence* sequence) -> Status {
    if (value < sequence->least || value > sequence->greatest) {
      return SqlError(ErrorKind::kOutOfRange,
                      "setval: value " + std::to_string(value) + " is out of bounds for sequence \"" + name + "\" (" +
                          std::to_string(sequence->least) + ".." + std::to_string(sequence->greatest) + ")");
    }
    sequence->value = value;
    sequence->was_given = was_given;
    return Status::Ok();
  }));
  if (was_given) current_[name] = value;
  return Status::Ok();
}

Status SessionSequences::Store() {
  if (pending_.empty()) return Status::Ok();
  for (Database* const database : {state_.database.get(), state_.temporaries.database.get()}) {
    const bool of_session = database == state_.temporaries.database.get();
    const auto is_its = [&](const auto& changed) { return IsTemporaryName(changed.first) == of_session; };
    if (std::ranges::none_of(pending_, is_its)) continue;
    TESSERA_TRY(database->ChangeNames([&](CatalogNames* names) {
      for (Sequence& sequence : names->sequences) {
        TakeValue(&sequence);
      }
      return Status::Ok();
    }));
  }
  pending_.clear();
  return Status::Ok();
}

namespace {

/// Those that the statement adds or changes, and drops.
Status Put(const Definition& changed, Sequences* all) {
  std::erase_if(*all, [&](const Sequence& s) { return std::ranges::count(changed.dropped_sequences, s.name) > 0; });
  for (const Sequence& sequence : changed.sequences) {
    const auto found = std::ranges::find(*all, sequence.name, &Sequence::name);
    if (found == all->end()) {
      all->push_back(sequence);
    } else {
      *found = sequence;
    }
  }
  return Status::Ok();
}

}  // namespace

Status ChangeSequence(SessionState* state, const Statement& statement, ResultWriter* out) {
  const bool creates = statement.kind == Statement::Kind::kCreateSequence;
  const bool drops = statement.kind == Statement::Kind::kDropSequence;
  TESSERA_TRY(ChangeSchemas(state, statement.definition.dependents));
  const auto change = [&](CatalogNames* names) -> Status {
    Sequences& all = names->sequences;
    for (const std::string& name : statement.definition.dropped_sequences) {
      if (FindSequence(all, name) == nullptr) return Absent(name, all);
    }
    if (!creates) return Put(statement.definition, &all);
    const Sequence& sequence = statement.definition.sequences[0];
    TESSERA_TRY(CheckSchemaExists(*names, sequence.name));
    const bool is_there = FindSequence(all, sequence.name) != nullptr;
    if (is_there && statement.definition.if_exists) return Status::Ok();
    if (is_there) return SqlError(ErrorKind::kDuplicateTable, "relation \"" + sequence.name + "\" already exists");
    all.push_back(sequence);
    return Status::Ok();
  };
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, statement.table));
  TESSERA_TRY(database->ChangeNames(change));
  return out->Done(creates ? "CREATE SEQUENCE" : drops ? "DROP SEQUENCE" : "ALTER SEQUENCE");
}

Status AddSequences(SessionState* state, const Statement& statement) {
  if (statement.definition.sequences.empty()) return Status::Ok();
  TESSERA_ASSIGN(Database* const database, DatabaseOf(state, statement.definition.schema.name));
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> now, database->Read());
  const std::shared_ptr<const TableInfo> table = now->Find(statement.definition.schema.name);
  return database->ChangeNames([&](CatalogNames* names) -> Status {
    for (Sequence sequence : statement.definition.sequences) {
      // (That of the table that was replaced.)
      std::erase_if(names->sequences, [&](const Sequence& s) {
        return statement.definition.or_replace && table != nullptr && s.name == sequence.name &&
               s.table_id == table->id;
      });
      if (FindSequence(names->sequences, sequence.name) != nullptr)
        return SqlError(ErrorKind::kDuplicateTable, "relation \"" + sequence.name + "\" already exists", -1,
                        "Run the statement again.");
      if (table != nullptr) sequence.table_id = table->id;
      names->sequences.push_back(std::move(sequence));
    }
    return Status::Ok();
  });
}

Status ChangeSequencesOf(SessionState* state, const Statement& statement) {
  if (statement.definition.sequences.empty() && statement.definition.dropped_sequences.empty()) return Status::Ok();
  TESSERA_ASSIGN(Database* const database, ChangedDatabase(state, statement));
  return database->ChangeNames([&](CatalogNames* names) -> Status {
    TESSERA_TRY(Put(statement.definition, &names->sequences));
    for (Sequence& sequence : names->sequences) {
      const bool is_new =
          FindSequence(statement.definition.sequences, sequence.name) != nullptr && sequence.table_id == 0;
      if (is_new && statement.kind == Statement::Kind::kAlterTable) sequence.table_id = statement.target->id;
    }
    return Status::Ok();
  });
}

bool NeedsSequences(const Statement& s) {
  using Kind = Statement::Kind;
  if (s.explain.wanted && !s.explain.analyze) return false;
  if (s.kind == Kind::kDropSchema || s.finish) return true;
  if (s.kind == Kind::kCreateView) return !s.tables.empty();
  if (s.kind == Kind::kDropSequence || s.kind == Kind::kAlterSequence) return !s.definition.dependents.empty();
  if (s.kind == Kind::kCreateTable || s.kind == Kind::kTruncate || s.kind == Kind::kAlterTable)
    return !s.definition.sequences.empty() || !s.definition.dropped_sequences.empty();
  const bool stores = s.kind == Kind::kInsert || s.kind == Kind::kMerge || s.kind == Kind::kCopyFrom;
  return stores && std::ranges::any_of(s.target->schema.columns, [](const ColumnSchema& column) {
           return column.default_expression && column.default_expression->starts_with("nextval(");
         });
}

}  // namespace tessera
