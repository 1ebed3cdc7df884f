// The structures of ADBC 1.1.0 that a driver shares with its manager, as https://arrow.apache.org/adbc/current/format/specification.html
// has them: their layout is fixed.
//
// Start at: AdbcDriver, AdbcDriverInit. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/arrow.h"

extern "C" {

using AdbcStatusCode = uint8_t;

enum : AdbcStatusCode {
  ADBC_STATUS_OK = 0,
  ADBC_STATUS_UNKNOWN = 1,
  ADBC_STATUS_NOT_IMPLEMENTED = 2,
  ADBC_STATUS_NOT_FOUND = 3,
  ADBC_STATUS_ALREADY_EXISTS = 4,
  ADBC_STATUS_INVALID_ARGUMENT = 5,
  ADBC_STATUS_INVALID_STATE = 6,
  ADBC_STATUS_INVALID_DATA = 7,
  ADBC_STATUS_INTEGRITY = 8,
  ADBC_STATUS_INTERNAL = 9,
  ADBC_STATUS_IO = 10,
  ADBC_STATUS_CANCELLED = 11,
};

inline constexpr int kAdbcVersion100 = 1000000, kAdbcVersion110 = 1001000;

struct AdbcDriver;

struct AdbcError {
  char* message;
  int32_t vendor_code;
  char sqlstate[5];
  void (*release)(AdbcError*);
  // From 1.1.0 on, and only if vendor_code said so:
  void* private_data;
  AdbcDriver* private_driver;
};

struct AdbcErrorDetail {
  const char* key;
  const uint8_t* value;
  size_t value_length;
};

struct AdbcDatabase {
  void* private_data;
  AdbcDriver* private_driver;
};
struct AdbcConnection {
  void* private_data;
  AdbcDriver* private_driver;
};
struct AdbcStatement {
  void* private_data;
  AdbcDriver* private_driver;
};

struct AdbcPartitions {
  size_t num_partitions;
  const uint8_t** partitions;
  const size_t* partition_lengths;
  void* private_data;
  void (*release)(AdbcPartitions*);
};

struct AdbcDriver {
  void* private_data;
  void* private_manager;
  AdbcStatusCode (*release)(AdbcDriver*, AdbcError*);
  AdbcStatusCode (*DatabaseInit)(AdbcDatabase*, AdbcError*);
  AdbcStatusCode (*DatabaseNew)(AdbcDatabase*, AdbcError*);
  AdbcStatusCode (*DatabaseSetOption)(AdbcDatabase*, const char*, const char*, AdbcError*);
  AdbcStatusCode (*DatabaseRelease)(AdbcDatabase*, AdbcError*);
  AdbcStatusCode (*ConnectionCommit)(AdbcConnection*, AdbcError*);
  AdbcStatusCode (*ConnectionGetInfo)(AdbcConnection*, const uint32_t*, size_t, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionGetObjects)(AdbcConnection*, int, const char*, const char*, const char*, const char**,
                                         const char*, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionGetTableSchema)(AdbcConnection*, const char*, const char*, const char*, ArrowSchema*,
                                             AdbcError*);
  AdbcStatusCode (*ConnectionGetTableTypes)(AdbcConnection*, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionInit)(AdbcConnection*, AdbcDatabase*, AdbcError*);
  AdbcStatusCode (*ConnectionNew)(AdbcConnection*, AdbcError*);
  AdbcStatusCode (*ConnectionSetOption)(AdbcConnection*, const char*, const char*, AdbcError*);
  AdbcStatusCode (*ConnectionReadPartition)(AdbcConnection*, const uint8_t*, size_t, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionRelease)(AdbcConnection*, AdbcError*);
  AdbcStatusCode (*ConnectionRollback)(AdbcConnection*, AdbcError*);
  AdbcStatusCode (*StatementBind)(AdbcStatement*, ArrowArray*, ArrowSchema*, AdbcError*);
  AdbcStatusCode (*StatementBindStream)(AdbcStatement*, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*StatementExecuteQuery)(AdbcStatement*, ArrowArrayStream*, int64_t*, AdbcError*);
  AdbcStatusCode (*StatementExecutePartitions)(AdbcStatement*, ArrowSchema*, AdbcPartitions*, int64_t*, AdbcError*);
  AdbcStatusCode (*StatementGetParameterSchema)(AdbcStatement*, ArrowSchema*, AdbcError*);
  AdbcStatusCode (*StatementNew)(AdbcConnection*, AdbcStatement*, AdbcError*);
  AdbcStatusCode (*StatementPrepare)(AdbcStatement*, AdbcError*);
  AdbcStatusCode (*StatementRelease)(AdbcStatement*, AdbcError*);
  AdbcStatusCode (*StatementSetOption)(AdbcStatement*, const char*, const char*, AdbcError*);
  AdbcStatusCode (*StatementSetSqlQuery)(AdbcStatement*, const char*, AdbcError*);
  AdbcStatusCode (*StatementSetSubstraitPlan)(AdbcStatement*, const uint8_t*, size_t, AdbcError*);
  // From 1.1.0 on:
  int (*ErrorGetDetailCount)(const AdbcError*);
  AdbcErrorDetail (*ErrorGetDetail)(const AdbcError*, int);
  const AdbcError* (*ErrorFromArrayStream)(ArrowArrayStream*, AdbcStatusCode*);
  AdbcStatusCode (*DatabaseGetOption)(AdbcDatabase*, const char*, char*, size_t*, AdbcError*);
  AdbcStatusCode (*DatabaseGetOptionBytes)(AdbcDatabase*, const char*, uint8_t*, size_t*, AdbcError*);
  AdbcStatusCode (*DatabaseGetOptionDouble)(AdbcDatabase*, const char*, double*, AdbcError*);
  AdbcStatusCode (*DatabaseGetOptionInt)(AdbcDatabase*, const char*, int64_t*, AdbcError*);
  AdbcStatusCode (*DatabaseSetOptionBytes)(AdbcDatabase*, const char*, const uint8_t*, size_t, AdbcError*);
  AdbcStatusCode (*DatabaseSetOptionDouble)(AdbcDatabase*, const char*, double, AdbcError*);
  AdbcStatusCode (*DatabaseSetOptionInt)(AdbcDatabase*, const char*, int64_t, AdbcError*);
  AdbcStatusCode (*ConnectionCancel)(AdbcConnection*, AdbcError*);
  AdbcStatusCode (*ConnectionGetOption)(AdbcConnection*, const char*, char*, size_t*, AdbcError*);
  AdbcStatusCode (*ConnectionGetOptionBytes)(AdbcConnection*, const char*, uint8_t*, size_t*, AdbcError*);
  AdbcStatusCode (*ConnectionGetOptionDouble)(AdbcConnection*, const char*, double*, AdbcError*);
  AdbcStatusCode (*ConnectionGetOptionInt)(AdbcConnection*, const char*, int64_t*, AdbcError*);
  AdbcStatusCode (*ConnectionGetStatistics)(AdbcConnection*, const char*, const char*, const char*, char,
                                            ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionGetStatisticNames)(AdbcConnection*, ArrowArrayStream*, AdbcError*);
  AdbcStatusCode (*ConnectionSetOptionBytes)(AdbcConnection*, const char*, const uint8_t*, size_t, AdbcError*);
  AdbcStatusCode (*ConnectionSetOptionDouble)(AdbcConnection*, const char*, double, AdbcError*);
  AdbcStatusCode (*ConnectionSetOptionInt)(AdbcConnection*, const char*, int64_t, AdbcError*);
  AdbcStatusCode (*StatementCancel)(AdbcStatement*, AdbcError*);
  AdbcStatusCode (*StatementExecuteSchema)(AdbcStatement*, ArrowSchema*, AdbcError*);
  AdbcStatusCode (*StatementGetOption)(AdbcStatement*, const char*, char*, size_t*, AdbcError*);
  AdbcStatusCode (*StatementGetOptionBytes)(AdbcStatement*, const char*, uint8_t*, size_t*, AdbcError*);
  AdbcStatusCode (*StatementGetOptionDouble)(AdbcStatement*, const char*, double*, AdbcError*);
  AdbcStatusCode (*StatementGetOptionInt)(AdbcStatement*, const char*, int64_t*, AdbcError*);
  AdbcStatusCode (*StatementSetOptionBytes)(AdbcStatement*, const char*, const uint8_t*, size_t, AdbcError*);
  AdbcStatusCode (*StatementSetOptionDouble)(AdbcStatement*, const char*, double, AdbcError*);
  AdbcStatusCode (*StatementSetOptionInt)(AdbcStatement*, const char*, int64_t, AdbcError*);
};

}  // extern "C"
