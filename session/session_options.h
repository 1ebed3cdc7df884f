// What a session is opened with.
//
// Start at: SessionOptions. Plain data.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "tablet/database.h"

namespace tessera {

class Cluster;
class CopyClient;
class Engine;
class SessionActivity;
struct TableRights;

enum class DeviceChoice {
  kAuto,  ///< a GPU if there is one and the section can run there, else the host
  kHost,
  kGpu,  ///< no GPU, or a section over a stored table that it cannot run, is an error
};

struct SessionOptions {
  std::string directory;  ///< "" for a database that lives until the session ends
  OpenMode mode = OpenMode::kReadWrite;
  DeviceChoice device = DeviceChoice::kAuto;
  int threads = 0;              ///< 0: as many as the process may use
  uint64_t memory_limit = 0;    ///< bytes that the process may allocate; 0: 80 % of what it may use
  uint64_t session_memory = 0;  ///< bytes that one of its statements may take at most, whatever SET says; 0: any
  uint64_t gpu_memory = 0;      ///< bytes; 0: most of what the device has free
  /// What it shares with other sessions of the process (session/engine.h); nullptr: nothing.
  std::shared_ptr<Engine> engine;
  /// Where it says what it does, made by the one who knows its user; nullptr: the session makes one.
  std::shared_ptr<SessionActivity> activity;
  Cluster* cluster = nullptr;  ///< this is rank 0 of it; nullptr: one process. It outlives the session.
  bool trace = false;          ///< keep the spans of each statement's phases, on all ranks
  bool scatter = false;        ///< ranks get their tablets from this one, even if they see the directory
  /// Whether COPY ... FROM STDIN may read standard input: not if the statements themselves come from there.
  bool standard_input_is_free = false;
  /// Where COPY FROM STDIN and TO STDOUT go instead; it outlives the session. nullptr: the standard streams.
  CopyClient* copy_client = nullptr;
  /// Whether statements may name files: COPY, FROM 'file', EXPORT, IMPORT, VACUUM INTO. Not if they are those of others.
  bool files = true;
  /// Where these must be, and names that are relative begin; "": anywhere.
  std::string files_folder;
  /// What it may do with tables (session/table_rights.h); nullptr: all.
  std::shared_ptr<const TableRights> rights;
  /// The role of CREATE ROLE whose grants hold, as they are when a statement runs; "": none.
  std::string role;
  /// Makes of a password what CREATE ROLE keeps of it; nullptr: only those are taken that have been made so.
  Result<std::string> (*make_verifier)(const std::string& password) = nullptr;
};

}  // namespace tessera
