// What a file is and has, of whatever format: before its rows are read.
//
// Start at: DescribeFile.
#pragma once

#include "base/status.h"
#include "tablet/file_chain.h"
#include "tablet/load/file_spec.h"
#include "tablet/values/types.h"

namespace tessera {

/// Sets format, options and schema of a source with an identity and a path, and its rows, which may be a guess. `in_place`: of
/// Parquet, its row groups, too. Errors: kIo; kSql, it is none of the format, or broken; kUnsupported, the format, or an option
/// for it.
Status DescribeFile(const FileSpec& spec, bool in_place, FileSource* source, double* rows);

/// The type of a column that has the one type in one file and the other in another.
SqlType TypeOfBoth(const SqlType& a, const SqlType& b);

}  // namespace tessera
