// The messages between ranks: what is in each and, once for both directions, in which order its fields travel.
// PROTOCOL.md says when each is sent. Private to mpi/.
//
// Start at: RunCommand, WriteShipment. Plain data; no MPI.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/phase_clock.h"
#include "base/status.h"
#include "kernels/kernels.h"
#include "mpi/cluster_settings.h"
#include "mpi/wire.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/files/file_identity.h"
#include "tablet/files/tablet.h"
#include "tablet/files/tablet_layout.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/shared_load.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/types.h"
#include "vm/rows/string_pool.h"
#include "vm/run/device.h"
#include "vm/run/statistics.h"
#include "vm/shares/exchange.h"

namespace tessera {

// ---- Commands of the master -----------------------------------------------------------------------------------------

/// The first four bytes of a command.
enum class Command : uint32_t { kOpen = 1, kRun, kClose, kLeave, kLoad };

struct OpenCommand {
  static constexpr Command kCommand = Command::kOpen;
  std::string directory;
  bool temporary = false, scatter = false;
};
template <class A>
void Fields(A& a, OpenCommand& m) {
  a.Text(m.directory);
  a.Number(m.temporary);
  a.Number(m.scatter);
}

/// Deleted rows of a tablet.
struct DeletedRows {
  uint64_t tablet = 0;  ///< its place in the table
  std::string rows;     ///< as of LiveRows::Pack
  friend bool operator==(const DeletedRows&, const DeletedRows&) = default;
};
template <class A>
void Fields(A& a, DeletedRows& m) {
  a.Number(m.tablet);
  a.Text(m.rows);
}

template <class A>
void Fields(A& a, FileIdentity& m) {
  a.Text(m.path);
  for (uint64_t* n : {&m.bytes, &m.device, &m.inode}) a.Number(*n);
  a.Number(m.written);
}

template <class A>
void Fields(A& a, ColumnFile& m) {
  a.Number(m.id);
  a.Number(m.file_id);
  a.Number(m.offset);
  a.Number(m.bytes);
  a.Number(m.header_checksum);
  a.Vector(m.columns);
}
template <class A>
void Fields(A& a, ConstantColumn& m) {
  a.Number(m.column);
  bool has_value = m.value.has_value();
  a.Number(has_value);
  std::string value = m.value.value_or("");
  a.Text(value);
  m.value.reset();
  if (has_value) m.value = std::move(value);
}

/// Where the columns of a tablet lie that is not one file.
struct LayoutMessage {
  uint64_t tablet = 0;  ///< its place in the table
  TabletLayout layout;
  friend bool operator==(const LayoutMessage&, const LayoutMessage&) = default;
};
template <class A>
void Fields(A& a, LayoutMessage& m) {
  a.Number(m.tablet);
  List(a, m.layout.files);
  List(a, m.layout.constants);
}

/// What a rank needs to know of a table to scan its portion.
struct TableMessage {
  int64_t id = 0;
  std::vector<FileIdentity>
      files;             ///< what its rows were read of: then the master sends the tablets; empty: it is a table
  bool is_told = false;  ///< what follows is as it was when it was told, and empty here
  std::string name;
  uint64_t rows = 0;           ///< live ones
  std::vector<SqlType> types;  ///< by column
  /// By column: what ranks decide from, all in the same way.
  std::vector<uint64_t> encoded_bytes, distinct;
  std::vector<TabletIdentity> tablets;
  std::vector<uint8_t> buckets;        ///< by tablet; empty: the table is not distributed
  std::vector<DeletedRows> deleted;    ///< in the order of the tablets; others have none
  std::vector<LayoutMessage> layouts;  ///< likewise; others are one file
  friend bool operator==(const TableMessage&, const TableMessage&) = default;
};
template <class A>
void Fields(A& a, TableMessage& m) {
  a.Number(m.id);
  List(a, m.files);
  a.Number(m.is_told);
  a.Text(m.name);
  a.Number(m.rows);
  a.Vector(m.types);
  a.Vector(m.encoded_bytes);
  a.Vector(m.distinct);
  a.Vector(m.tablets);
  a.Vector(m.buckets);
  List(a, m.deleted);
  List(a, m.layouts);
}

struct TablesMessage {
  std::vector<int64_t> alive;        ///< ids of all tables that exist; a rank forgets others
  std::vector<TableMessage> tables;  ///< the tables that the program reads, in its order
  /// Whether tablets come from the master though ranks see the database.
  bool have_files() const {
    return std::any_of(tables.begin(), tables.end(), [](const TableMessage& t) { return !t.files.empty(); });
  }
};
template <class A>
void Fields(A& a, TablesMessage& m) {
  a.Vector(m.alive);
  List(a, m.tables);
}

template <class T>
bool IsAtMost(const T& value, const T& greatest) {
  return value <= greatest;
}
template <class A>
void Fields(A& a, ClusterSettings& m) {
#define CLUSTER_SETTING(Type, Name, Default, Greatest, Comment) \
  a.Number(m.Name);                                             \
  a.Require(IsAtMost<Type>(m.Name, Greatest));
#include "mpi/cluster_settings.def"
}
template <class A>
void Fields(A& a, QueryChoices& m) {
  a.Number(m.use_gpu);
  a.Number(m.gpu_required);
  a.Number(m.profile);
  a.Number(m.trace);
  a.Number(m.gpu_memory);
}

struct RunCommand {
  static constexpr Command kCommand = Command::kRun;
  uint64_t number = 0;  ///< of the program, the same on all ranks
  std::string program;  ///< vm::Program::Serialize
  QueryChoices choices;
  vm::RunSettings run_settings;
  ClusterSettings settings;
  TablesMessage tables;
};
template <class A>
void Fields(A& a, RunCommand& m) {
  a.Number(m.number);
  a.Text(m.program);
  Fields(a, m.choices);
#define RUN_SETTING(Type, Name, Default, Greatest, Comment) \
  a.Number(m.run_settings.Name);                            \
  a.Require(m.run_settings.Name <= vm::Type::Greatest);
#include "vm/run/run_settings.def"
  Fields(a, m.settings);
  Fields(a, m.tables);
}

struct CloseCommand {
  static constexpr Command kCommand = Command::kClose;
};
template <class A>
void Fields(A&, CloseCommand&) {}

struct LeaveCommand {
  static constexpr Command kCommand = Command::kLeave;
  int32_t status = 0;  ///< with which every rank exits
};
template <class A>
void Fields(A& a, LeaveCommand& m) {
  a.Number(m.status);
}

/// A COPY that all ranks share.
struct LoadCommand {
  static constexpr Command kCommand = Command::kLoad;
  uint64_t number = 0;  ///< as a program's
  SharedLoad load;   ///< its directory is each rank's own; the options without `zone`, `threads` and what cannot travel
  std::string zone;  ///< empty: UTC
  ClusterSettings settings;
};
template <class A>
void Fields(A& a, ColumnSchema& m) {
  a.Text(m.name);
  a.Number(m.type);
  // The number of an ENUM is the process's own.
  std::string labels;
  if (!A::kReads && m.type.id == TypeId::kEnum) labels = EnumText(EnumOf(m.type));
  a.Text(labels);
  if (A::kReads && m.type.id == TypeId::kEnum) {
    EnumType type;
    a.Require(ReadEnum(labels, &type) && CheckType(type).ok());
    if (!a.failed()) m.type = EnumSqlType(type);
  }
  a.Number(m.not_null);
  bool has_default = m.default_text.has_value();
  std::string default_text = m.default_text.value_or("");
  a.Number(has_default);
  a.Text(default_text);
  if (A::kReads && has_default) m.default_text = std::move(default_text);
}
template <class A>
void Fields(A& a, LoadCommand& m) {
  a.Number(m.number);
  TabletTarget& target = m.load.target;
  a.Text(target.load);
  a.Require(!target.load.empty() && target.load.find('/') == std::string::npos);
  a.Number(target.durable);
  a.Number(target.compression);
  a.Require(target.compression <= CompressionGoal::kRatio);
  a.Number(target.database);
  a.Number(target.table_id);
  a.Number(target.first_tablet_id);
  a.Text(m.load.schema.name);
  List(a, m.load.schema.columns);
  if (A::kReads && !a.failed()) a.Require(CheckSchema(m.load.schema).ok());
  a.Number(m.load.short_rows);
  a.Number(m.load.tablet_rows);
  a.Require(m.load.tablet_rows <= kGreatestTabletRows && m.load.short_rows < kGreatestTabletRows);
  a.Require(m.load.tablet_rows == 0 || m.load.short_rows < m.load.tablet_rows);
  a.Text(m.load.file);
  a.Number(m.load.file_bytes);
  a.Number(m.load.text_bytes);
  a.Require(m.load.file_bytes <= INT64_MAX && m.load.text_bytes <= m.load.file_bytes);
  a.Number(m.load.file_written);
  CopyFromOptions& options = m.load.options;
  a.Number(options.format.header);
  for (char* c : {&options.format.delimiter, &options.format.quote, &options.format.escape}) a.Number(*c);
  a.Require(options.format.quote == options.format.escape);
  a.Text(options.format.null_string);
  a.Vector(options.columns);
  a.Text(m.zone);
  Fields(a, m.settings);
}

/// The bytes of a command, its number first.
template <class M>
std::string WriteCommand(const M& command) {
  WireWriter out;
  out.Number(M::kCommand);
  Append(command, &out);
  return out.Take();
}

// ---- Between the ranks ----------------------------------------------------------------------------------------------

/// A tablet that has to come from the master, or columns of it that lie in another file than others.
struct WantedTablet {
  TabletIdentity identity;
  uint64_t table = 0, tablet = 0;  ///< index of the table in the program, of the tablet in the table
};
struct WantedMessage {
  std::vector<WantedTablet> tablets;
};
template <class A>
void Fields(A& a, WantedMessage& m) {
  a.Vector(m.tablets);
}

/// What a rank has counted of a file that is loaded.
struct CountsMessage {
  std::vector<StretchCount> counts;
};
template <class A>
void Fields(A& a, CountsMessage& m) {
  a.Vector(m.counts);
}

/// The tablets that a rank has made of its share of a load.
struct LoadedMessage {
  NewTablets tablets;
};
/// Of a new tablet: none of its rows has been deleted.
template <class A>
void Fields(A& a, TabletRecord& r) {
  a.Number(r.id);
  a.Number(r.rows);
  a.Number(r.file_bytes);
  a.Number(r.header_checksum);
  a.Number(r.bucket);
}
template <class A>
void Fields(A& a, LoadedMessage& m) {
  NewTablets& t = m.tablets;
  a.Number(t.rows_added);
  List(a, t.records);
  a.Vector(t.nulls);
  a.Vector(t.bytes);
  a.Vector(t.min);
  a.Vector(t.max);
  const size_t columns = t.nulls.size();
  a.Require(t.bytes.size() == columns && t.min.size() == columns && t.max.size() == columns);
  a.Length(t.distinct, sizeof(uint64_t));
  a.Require(t.distinct.size() == columns);
  for (DistinctCount& distinct : t.distinct) {
    std::string bytes;
    if (!A::kReads) bytes = distinct.Serialize();
    a.Text(bytes);
    if (A::kReads && !a.failed()) a.Require(distinct.Deserialize(bytes));
  }
}

template <class A>
void Fields(A& a, Status& status) {
  bool ok = status.ok();
  a.Number(ok);
  if (ok) {
    if (A::kReads) status = Status();
    return;
  }
  ErrorKind kind = ErrorKind::kInternal;
  int32_t position = -1;
  std::string message, hint;
  if (!A::kReads) {
    kind = status.kind();
    position = status.position();
    message = status.message();
    hint = status.hint();
  }
  a.Number(kind);
  a.Require(kind <= ErrorKind::kInternal);
  a.Number(position);
  a.Require(position >= -1);
  a.Text(message);
  a.Text(hint);
  if (A::kReads) status = Status(kind, std::move(message), std::move(hint), position);
}

/// Text travels as a list of the different values, and for each row the index of its value in that list.
void WriteShipment(const vm::Shipment& shipment, const vm::StringPool& strings, WireWriter* out);
/// kCorrupt: what came is no rows, or not those that were sent.
Status DamagedRows();
/// Text is interned into `strings`. `pool`: for many rows; or nullptr. Errors: kCorrupt; also if the columns are not of
/// these types.
Result<vm::Shipment> ReadShipment(std::string_view bytes, const std::vector<SqlType>& types, vm::StringPool* strings,
                                  ThreadPool* pool = nullptr);

// ---- Statistics -----------------------------------------------------------------------------------------------------

template <class A>
void Fields(A& a, vm::JoinedRows& j) {
  a.Text(j.table);
  a.Number(j.rows);
  a.Number(j.milliseconds);
}
/// One field of vm/program/section_statistics.def.
template <class A, class T>
void StatisticField(A& a, T& v) {
  if constexpr (std::is_arithmetic_v<T>) {
    a.Number(v);
  } else if constexpr (std::is_same_v<T, std::string>) {
    a.Text(v);
  } else {
    List(a, v);
  }
}
template <class A>
void Fields(A& a, vm::SectionStatistics& s) {
#define STATISTIC(Merging, Type, Name) StatisticField(a, s.Name);
#include "vm/program/section_statistics.def"
#undef STATISTIC
}
template <class A>
void Fields(A& a, Account& account) {
  a.Number(account.nanoseconds);
  a.Vector(account.traffic);
  a.Number(account.collectives);
}
template <class A>
void Fields(A& a, vm::SectionAccount& s) {
  a.Number(s.section);
  for (uint64_t* n : {&s.rows_in, &s.rows_out, &s.tablets, &s.bytes_read}) a.Number(*n);
  Fields(a, s.account);
}
template <class A>
void Fields(A& a, vm::RankStatistics& r) {
  a.Number(r.rank);
  a.Number(r.threads);
  a.Text(r.host);
  a.Text(r.device);
  for (uint64_t* n : {&r.rows_scanned, &r.rows_out, &r.tablets, &r.bytes_read, &r.bytes_transferred, &r.bytes_sent,
                      &r.bytes_received, &r.bytes_scattered, &r.memory_peak, &r.temporary_peak})
    a.Number(*n);
  for (double* ms : {&r.total, &r.read_work, &r.transfer_work, &r.kernel_work}) a.Number(*ms);
  Fields(a, r.account);
  List(a, r.sections);
  a.Vector(r.spans);
  a.Number(r.agreed);
}
/// A rank's own; `ranks` and `idle_portions` are the master's to find.
template <class A>
void Fields(A& a, vm::RunStatistics& s) {
  Fields(a, s.mine);
  List(a, s.sections);
}

}  // namespace tessera
