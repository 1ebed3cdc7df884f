// The wording follows PostgreSQL.

#include "vm/meaning/lane_error.h"

namespace tessera::vm {

Status LaneErrorStatus(LaneError error, const Instruction& in) {
  switch (error) {
    case LaneError::kNone:
      break;
    case LaneError::kOverflow:
      return SqlError(ErrorKind::kOutOfRange, "bigint out of range", -1,
                      "Cast an operand to DECIMAL(38) or DOUBLE PRECISION for a wider range.");
    case LaneError::kWideOverflow:
      return SqlError(ErrorKind::kOutOfRange, "numeric value out of range: more than 38 digits", -1,
                      "Cast an operand to DOUBLE PRECISION for a wider range.");
    case LaneError::kRange: {
      SqlType type = UnpackType(in.p4);
      std::string name = type.ToString();
      if (type.id != TypeId::kDecimal) {
        for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
      }
      return SqlError(ErrorKind::kOutOfRange, name + " out of range");
    }
    case LaneError::kDateRange:
      return SqlError(ErrorKind::kDatetimeOverflow, "date out of range: years 1 to 9999");
    case LaneError::kFloatToInteger:
      return SqlError(ErrorKind::kOutOfRange,
                      "number out of range: a floating point value is NaN, infinite or too large for the target type");
    case LaneError::kBadText:
      return SqlError(ErrorKind::kInvalidText, "invalid input syntax");
    case LaneError::kNegativeLength:
      return SqlError(ErrorKind::kNegativeSubstring, "negative substring length not allowed");
    case LaneError::kSeveralRows:
      return SqlError(ErrorKind::kCardinality, "more than one row returned by a subquery used as an expression", -1,
                      "Use an aggregate such as min or max, or a condition that one row meets.");
    case LaneError::kRootOfNegative:
      return SqlError(ErrorKind::kInvalidPower, "cannot take square root of a negative number");
    case LaneError::kLogarithmOfZero:
      return SqlError(ErrorKind::kInvalidLogarithm, "cannot take logarithm of zero", -1,
                      "nullif(x, 0) makes NULL of it.");
    case LaneError::kLogarithmOfNegative:
      return SqlError(ErrorKind::kInvalidLogarithm, "cannot take logarithm of a negative number");
    case LaneError::kLogarithmToBaseOne:
      return SqlError(ErrorKind::kInvalidLogarithm, "cannot take logarithm to base 1");
    case LaneError::kOutOfDomain:
      return SqlError(ErrorKind::kOutOfRange, "input is out of range", -1,
                      "asin and acos take -1 to 1, and the functions of angles no infinity.");
    case LaneError::kZeroToNegative:
      return SqlError(ErrorKind::kInvalidPower, "zero raised to a negative power is undefined");
    case LaneError::kComplexPower:
      return SqlError(ErrorKind::kInvalidPower,
                      "a negative number raised to a non-integer power yields a complex result");
    case LaneError::kFloatOverflow:
      return SqlError(ErrorKind::kOutOfRange, "double precision out of range: overflow");
    case LaneError::kTextTooLong:
      return SqlError(ErrorKind::kInvalidParameterValue, "requested length too large", -1,
                      "A text has less than 2^30 bytes.");
    case LaneError::kFieldZero:
      return SqlError(ErrorKind::kInvalidParameterValue, "field position must not be zero", -1,
                      "The first field is 1, the last -1.");
    case LaneError::kNoCharacter:
      return SqlError(ErrorKind::kInvalidParameterValue, "requested character is not valid", -1,
                      "Characters have the numbers 1 to 1114111 (10FFFF), without 55296 to 57343.");
    case LaneError::kIntervalRange:
      return SqlError(ErrorKind::kDatetimeOverflow, "interval out of range");
    case LaneError::kNoBytes:
      return SqlError(ErrorKind::kInvalidText, "invalid input syntax for type BYTEA", -1,
                      "Bytes are \\x and pairs of hexadecimal digits; decode takes 'hex', 'base64' and 'escape'.");
    case LaneError::kNoDate:
      return SqlError(ErrorKind::kDatetimeOverflow, "date field value out of range", -1,
                      "make_date takes a year from 1 to 9999, a month and a day.");
    case LaneError::kRealOverflow:
      return SqlError(ErrorKind::kOutOfRange, "REAL out of range: overflow", -1,
                      "Cast an operand to DOUBLE PRECISION for a wider range.");
    case LaneError::kNegativeShift:
      return SqlError("negative number of bits to shift by", -1, "x << -n is x >> n.");
  }
  return {ErrorCode::kInternal, "an instruction failed without a reason"};
}

}  // namespace tessera::vm
