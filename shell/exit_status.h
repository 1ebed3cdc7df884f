// What the exit status of `tessera` means to a script.
#pragma once

namespace tessera {

enum ExitStatus : int {
  kExitOk = 0,
  kExitSqlError = 1,  ///< a statement or dot command failed
  kExitUsage = 2,     ///< wrong options, a script or output file, the device
  kExitDatabase = 3,  ///< the database cannot be opened
};

}  // namespace tessera
