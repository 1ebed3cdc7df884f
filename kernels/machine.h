// What the host hands to the VM kernel: the lowered program, bound tablets, the layout of shared memory, the sinks.
// Private to kernels/; README.md beside this draws the machine. Plain data, compiled by g++ and nvcc; pointers are
// device pointers.
//
// Start at: Launch.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "vm/binding.h"

namespace tessera::kernels {

/// The opcodes, from the one list. (vm/program.h has the same enum, among strings and vectors that kernels do without.)
enum class Op : uint16_t {
#define OPCODE(Name, ...) Name,
#include "vm/opcodes.def"
#undef OPCODE
  kCount
};

// ---- Shape of the machine -------------------------------------------------------------------------------------------

/// Rows that filters have left wait in queues, the rest of the program takes them kBatchRows at a time, so many a
/// thread.
inline constexpr uint32_t kQueuedRows = 4;
inline constexpr uint32_t kBatchRows = 32 * kQueuedRows;
/// A program can let its rows wait twice. Half a slice is added to less than a batch, a batch to less than another.
inline constexpr uint32_t kQueues = 2;
inline constexpr uint32_t kFirstQueue = kBatchRows + 256, kSecondQueue = 2 * kBatchRows;
inline constexpr uint32_t kQueueEntries = kFirstQueue + kSecondQueue;
/// Join tables whose cursors can wait with the rows.
inline constexpr uint32_t kMaxCarried = 8;
/// 16 rows a thread amortise the decoding of an instruction: SSB q1.1 on an H100 takes 0.95 ms with 4, 0.57 with 16.
inline constexpr uint32_t kRows = 16;
/// Interpreting threads of a block; one producer warp comes on top. Blocks of 128 and of 256 are equally fast; the
/// smaller tile halves what a register costs in shared memory (16 KiB).
inline constexpr uint32_t kThreads = 128;
inline constexpr uint32_t kWarps = kThreads / 32;
inline constexpr uint32_t kTileRows = kThreads * kRows;
/// Rows of a tile that belong to one warp: the unit that is applied wholly or not at all.
inline constexpr uint32_t kSliceRows = 32 * kRows;
inline constexpr uint32_t kMaxStages = 4;
inline constexpr uint32_t kNowhere = 0xFFFFFFFFu;
inline constexpr uint32_t kMaxGroupKeys = 63;  ///< one bit each in the first word of a group's record

static_assert(kTileRows == 2048,
              "tiles start at multiples of 2048 rows: only these are aligned for bulk copies at every width");

// ---- Program --------------------------------------------------------------------------------------------------------

enum class OperandSource : uint8_t { kNone, kSlot, kRegister, kConstant, kPayload };

/// Where a register lives: a byte offset in shared memory, or, with kInScratch, in the block's part of `scratch`. A
/// register is private to its threads: one NULL word per thread, then [16][threads] values of 8 (kWidePlace: 16) bytes.
inline constexpr uint32_t kInScratch = 1u << 31;
inline constexpr uint32_t kWidePlace = 1u << 30;
inline constexpr uint32_t kPlaceOffset = kWidePlace - 1;
constexpr uint32_t RegisterBytes(bool wide) { return kThreads * 4 + kThreads * kRows * (wide ? 16 : 8); }

/// An instruction, lowered: operands resolved as far as the program alone allows. Addresses are those of the program.
struct alignas(16) InstructionHead {
  Op op = Op::End;
  OperandSource source = OperandSource::kNone;       ///< of an operand of 64 bits, which is fetched before the switch
  bool null_constant = false;                        ///< kConstant: the operand is NULL
  uint16_t slot = 0;                                 ///< kSlot; kPayload: the join table
  uint16_t p1 = 0;                                   ///< mask register, predicate, aggregate, join table
  uint32_t place = 0;                                ///< kRegister and stores: the register
  OperandSource wide_source = OperandSource::kNone;  ///< of an operand of class W, which the shape fetches row by row
  bool payload_packed = false;                       ///< kPayload: a field of the cursor, see PayloadShape
  bool payload_of_product = false;                   ///< kPayload: of a table without keys, the same row for all
  uint8_t unused = 0;
};
struct alignas(16) DeviceInstruction {
  InstructionHead head;
  uint32_t address = 0;  ///< the instruction's own
  /// As in the program. SkipIfNone: how many instructions on it jumps (p1: 1 if the rows that are left are queued);
  /// Next: how many back (`low`: how many in a unit all of whose pairs pass the filters); direct Group: the key.
  int32_t p3 = 0;
  /// Aggregates with keys: first word in the group's state; Group: place of the key; Probe: offset of its ProbeRecord.
  uint32_t state = 0;
  uint32_t private_state = kNowhere;  ///< ... byte offset of its arrays in shared memory; kNowhere: not private
  /// End: 0, or 1 more than the number of a mark, which measures and does not end. kConstant: the value; CheckI,
  /// CheckW: the lower bound. Packed payload: what is added to the field; the field's mask above its shift. Other
  /// payload: addresses of the column's lower half and of its NULL bytes (0 if none is NULL).
  int64_t low = 0, high = 0;
  /// CheckI, CheckW: the upper bound. Packed payload: the field's value that is NULL, or -1. Other payload: address of
  /// the upper half. Probe with several keys: the places of their registers, from `low` on.
  int64_t upper_low = 0, upper_high = 0;
};
static_assert(sizeof(DeviceInstruction) == 64);

/// Keys of a join that the device looks up together.
inline constexpr uint32_t kMaxJoinKeys = 4;

/// Opcodes whose meaning has more than some 30 machine instructions.
// clang-format off
#define TESSERA_LONG_OPCODES(X)                                                                                       \
  X(MulIX) X(DivI) X(ModI) X(DivRoundI) X(FloorDivI) X(DivF) X(ModF) X(RoundDigitsF) X(AddMonthsD) X(AddMonthsT)      \
  X(DatePartD) X(DatePartT)
// clang-format on
constexpr bool IsLong(Op op) {
  switch (op) {
#define TESSERA_LONG(Name) case Op::Name:
    TESSERA_LONG_OPCODES(TESSERA_LONG)
#undef TESSERA_LONG
    return true;
    default:
      return false;
  }
}

/// Opcodes of the lean instantiation of the VM kernel, which programs get that use no others: with fewer it keeps 96
/// registers a thread instead of 128, and a multiprocessor holds four blocks instead of three. No 128 bits, nothing
/// long (see IsLong), no rows.
constexpr bool IsLean(Op op) {
  switch (op) {
    case Op::End:
    case Op::SkipIfNone:
    case Op::MaskSave:
    case Op::MaskLoad:
    case Op::MaskClear:
    case Op::MaskOr:
    case Op::MaskAndNot:
    case Op::Filter:
    case Op::FilterTrue:
    case Op::FilterFalse:
    case Op::FilterNull:
    case Op::FilterNotNull:
    case Op::FilterEqI:
    case Op::FilterNeI:
    case Op::FilterLtI:
    case Op::FilterLeI:
    case Op::FilterGtI:
    case Op::FilterGeI:
    case Op::FilterEqT:
    case Op::FilterNeT:
    case Op::Load:
    case Op::Store:
    case Op::AddI:
    case Op::SubI:
    case Op::RSubI:
    case Op::MulI:
    case Op::AddF:
    case Op::SubF:
    case Op::RSubF:
    case Op::MulF:
    case Op::IToF:
    case Op::Group:
    case Op::CountRows:
    case Op::Count:
    case Op::SumI:
    case Op::SumF:
    case Op::MinI:
    case Op::MaxI:
      return true;
    default:
      return false;
  }
}

/// ... that the instantiation for products has besides.
constexpr bool IsOfPairs(Op op) {
  switch (op) {
    case Op::Probe:
    case Op::Next:
    case Op::FilterEqF:
    case Op::FilterNeF:
    case Op::FilterLtF:
    case Op::FilterLeF:
    case Op::FilterGtF:
    case Op::FilterGeF:
    case Op::NegF:
    case Op::CanonF:
    case Op::MinF:
    case Op::MaxF:
      return true;
    default:
      return false;
  }
}

/// Instantiations of the VM kernel, from few opcodes to all of them.
enum class Variant : uint8_t {
  kLean,   ///< the opcodes of IsLean
  kStar,   ///< and Probe of direct tables with one key, payload operands and queues
  kPairs,  ///< ... and products with tables without keys, comparisons of doubles and their extremes
  kFull,
  kDpPairs,  ///< kPairs, launched from the device
  kDp,       ///< kFull, launched from the device
};
/// Whether an instantiation has everything but queues; whether it has products.
constexpr bool HasAll(Variant variant) { return variant == Variant::kFull || variant == Variant::kDp; }
constexpr bool IsPairs(Variant variant) { return variant == Variant::kPairs || variant == Variant::kDpPairs; }
/// Whether it is launched from the device.
constexpr bool IsDp(Variant variant) { return variant == Variant::kDp || variant == Variant::kDpPairs; }
constexpr bool HasProducts(Variant variant) { return HasAll(variant) || IsPairs(variant); }
/// Blocks a multiprocessor that an instantiation is compiled for. Three blocks of 5 warps put 4 warps on each quarter
/// of a multiprocessor and leave 128 registers a thread, just enough for all opcodes. Four put 5 there and leave 96.
/// (A kernel that can be launched from the device is linked apart and gets fewer registers out of the same source: with
/// 128 it would spill.)
constexpr uint32_t BlocksOf(Variant variant) { return variant == Variant::kLean ? 4 : variant == Variant::kDp ? 2 : 3; }
/// The opcodes of an instantiation.
constexpr bool IsIn(Variant variant, Op op) {
  return HasAll(variant) || IsLean(op) || (variant == Variant::kStar && op == Op::Probe) ||
         (IsPairs(variant) && IsOfPairs(op));
}

// ---- Join tables ----------------------------------------------------------------------------------------------------

/// How a key becomes a value of the join table.
enum class JoinLookup : uint8_t {
  kCross,   ///< no key: each row matches all of the table's
  kBits,    ///< direct: one bit a place says that there is a match, and nothing is read of it
  kDirect,  ///< direct: one value of `width` bytes a place; 0: no match
  kHash32,  ///< open addressing, linear probing: slots of {key, value}, four bytes each; value 0: free
  kHash64,  ///< the same with {key, value, unused} of 8 + 4 + 4 bytes
};

/// A join table as the kernel sees it. Keys make one number, the sum of (key - low) * stride over the key columns;
/// direct tables are indexed by it, hashed ones have it as their key. The value of a match is what the row's cursor
/// gets: the payload itself, packed into bit fields, or 1 + the number of the first matching row, less 1.
struct alignas(16) JoinRecord {
  JoinLookup lookup = JoinLookup::kBits;
  uint8_t width = 0;            ///< kDirect: 1, 2 or 4
  bool rows_in_values = false;  ///< cursors are numbers of rows
  uint8_t keys = 0;
  uint32_t rows = 0;
  uint32_t shared_bits = kNowhere;  ///< offset in shared memory of the block's copy of `bits`
  uint32_t bits_bytes = 0;          ///< multiple of 16
  const uint32_t* bits = nullptr;   ///< one bit a place; nullptr if values are asked at once
  const void* values = nullptr;
  /// Offset in shared memory: uint32_t[kTileRows]; kCross: ProductCursor[kThreads]; kNowhere: nobody reads them.
  uint32_t cursors = kNowhere;
  uint32_t queue_cursors = kNowhere;  ///< the same for queued rows: uint32_t[warps][kQueueEntries]
  uint32_t slot_shift = 0;            ///< hashed: 32 or 64 less the binary logarithm of the number of slots
  uint32_t slot_mask = 0;             ///< ... that number less 1
  uint32_t unused[2] = {};
  const uint32_t* next =
      nullptr;        ///< per row 1 + the next one with the same key, 0 at the end; nullptr: keys are unique
  uint64_t last = 0;  ///< the greatest number that keys of the table make
  int64_t low[kMaxJoinKeys] = {};
  uint64_t span[kMaxJoinKeys] = {};  ///< greatest key - low
  uint64_t stride[kMaxJoinKeys] = {};
};
static_assert(sizeof(JoinRecord) % 16 == 0);

/// The rows of a table without keys that a warp's rows have yet to meet, from the one that they meet now on. All live
/// rows are at the same one; each thread has its own copy.
struct ProductCursor {
  uint32_t row, end;
};

/// Where a hashed key's search begins.
TESSERA_HD uint32_t JoinSlot32(uint32_t key, uint32_t shift) { return (key * 0x9E3779B1u) >> shift; }
TESSERA_HD uint64_t JoinProduct64(uint64_t key) {
  // Keys may differ in their upper bits alone (doubles do): these have to come down before the product spreads them.
  return (key ^ key >> 32) * 0x9E3779B97F4A7C15u;
}
TESSERA_HD uint32_t JoinSlot64(uint64_t key, uint32_t shift) {
  return static_cast<uint32_t>(JoinProduct64(key) >> shift);
}
/// The slot of the search's given step: first those of the 32-byte sector where it begins, which is what memory is read
/// by, in turn, then the same of the sectors behind it.
template <class Slot>
TESSERA_HD uint32_t JoinSlotOfStep(uint32_t home, uint32_t step, uint32_t mask) {
  constexpr uint32_t kInSector = 32 / sizeof(Slot) - 1;
  return ((home & ~kInSector) + (step & ~kInSector) + ((home + step) & kInSector)) & mask;
}

// ---- Tablets --------------------------------------------------------------------------------------------------------

/// vm::BoundSlot with device pointers. The head is what most instructions need: one load of 16 bytes.
struct alignas(16) SlotHead {
  const uint8_t* codes = nullptr;
  uint32_t stage = kNowhere;  ///< byte offset in a stage of the ring; kNowhere: read on demand
  uint8_t width = 0;
  vm::Decode decode = vm::Decode::kConstant;
  bool may_be_null = false;
  bool all_null = false;
};
struct alignas(16) SlotRecord {
  SlotHead head;
  uint64_t base = 0;
  int64_t base_high = 0;
  uint64_t null_code = 0;  ///< of slots that are not wide: base + the NULL code
  int64_t null_code_high = 0;
  const int64_t* map = nullptr;
  const uint8_t* map_null = nullptr;
  const uint8_t* null_bytes = nullptr;
  bool has_null_code = false;
};
static_assert(sizeof(SlotRecord) == 80);

enum class PredicateKind : uint8_t { kAll, kNone, kRange, kSet };

/// vm::BoundPredicate, complete in itself. A set by row and a test of NULL bytes are ranges over a stream of bytes
/// here. Ranges of 1 and 2 bytes do not wrap around: the host has turned those that do into the negation of what they
/// leave out.
struct alignas(16) PredicateHead {
  const uint8_t* codes = nullptr;
  uint32_t stage = kNowhere;
  uint8_t width = 0;
  PredicateKind kind = PredicateKind::kAll;
  bool negated = false;
  bool exclude_null = false;
};
struct alignas(16) PredicateRecord {
  PredicateHead head;
  uint64_t low = 0, span = 0;
  uint64_t low_high = 0, span_high = 0;  ///< width 16
  uint64_t null_code = 0;
  int64_t null_code_high = 0;
  const uint8_t* set = nullptr;
  uint64_t unused = 0;
};
static_assert(sizeof(PredicateRecord) == 80);

/// A Probe whose key is a slot, bound: kRange if the codes of a staged column of 1, 2 or 4 bytes without NULLs become
/// places of a direct table by adding `delta`, modulo 2^32; otherwise the key is fetched as a value.
struct alignas(16) ProbeRecord {
  PredicateHead head;
  uint32_t delta = 0;
  uint32_t unused[3] = {};
};

/// A column of the ring.
struct StagedSlot {
  uint32_t slot;
  uint32_t offset;  ///< in a stage
};

/// What the producer tells about a stage. rows == 0: there is no tile, the launch ends here.
struct alignas(16) TileHeader {
  uint32_t index;  ///< number of the tile, or of the first unit of a product, in the launch
  uint32_t tablet;
  uint32_t first;  ///< row of the tablet
  uint32_t rows;
};
/// ... and of units of a product that are run as one: a tile, and parts of the join table that lie side by side.
struct alignas(8) UnitHeader {
  uint32_t part;  ///< the first one
  uint32_t count : 31;
  uint32_t all : 1;  ///< all pairs pass the program's filters
};
/// In Launch::units: all pairs of the unit pass.
inline constexpr uint32_t kAllPairs = 1u << 31;

/// What a warp remembers in shared memory, because it needs it once a tile at most.
struct alignas(16) WarpState {
  unsigned long long rows_at = 0;       ///< second pass: where the next rows go
  unsigned long long rows_counted = 0;  ///< first pass: rows that are going to be emitted
  uint32_t next = 0;                    ///< the first tile that the warp has not applied
  uint32_t tablet = 0;                  ///< whose rows are queued
  uint32_t fed = 0;                     ///< rows that went to groups in this slice
  uint32_t unused = 0;
  unsigned long long marked_at = 0;  ///< the clock at its latest mark
  unsigned long long unused_too = 0;
};
/// A place in a program that is measured: what came there, and what went by since the mark before it.
struct alignas(16) Mark {
  unsigned long long rows = 0, cycles = 0;  ///< sums over all warps
};

// ---- Sinks ----------------------------------------------------------------------------------------------------------

/// State of an aggregate without keys: per warp in shared memory, per block in device memory at the end of a launch.
struct alignas(16) Partial {
  int64_t low = 0, high = 0;  ///< sums: 128 bits; floats: bits of the double
  uint64_t count = 0;         ///< values that came in
  uint64_t unused = 0;
};

/// ... and, where a row can reach the sink many times, per thread in shared memory, from where a slice's end moves it
/// to the warp's: adding lanes up each time would take longer than all else. Sums: the sums of the values' lower and
/// upper halves.
struct alignas(16) ThreadState {
  uint64_t low = 0, high = 0;
};

/// Groups of a section with keys. A group has an ordinal, given in order of arrival; its record and state are dense
/// arrays. A slot of the hash table is 0 (free), tag | 1 (a thread is writing the record) or tag | ordinal + 2; the tag
/// is the upper half of the hash. `record_words` = 1 (NULL bits) + words of the keys.
struct GroupTable {
  uint64_t* slots = nullptr;
  uint64_t slot_mask = 0;
  uint32_t max_groups = 0;
  uint32_t record_words = 0;
  uint32_t state_words = 0;  ///< of a group: seen bits, 64 aggregates a word, then the states, then the lock if any
  uint32_t lock_word = kNowhere;
  uint64_t* records = nullptr;
  uint64_t* states = nullptr;
  const uint64_t* initial_state = nullptr;
};

/// A key of a small domain: its part of the group's number is (value - low + nullable) * stride, 0 for NULL.
struct DirectKey {
  int64_t low = 0;
  uint32_t stride = 0;
  uint32_t nullable = 0;  ///< 1 if the key can be NULL
};
inline constexpr uint32_t kMaxDirectKeys = 8;

/// Rows that Emit made, column by column.
struct Output {
  uint64_t* low = nullptr;   ///< [column][capacity]
  uint64_t* high = nullptr;  ///< [wide column][capacity]
  uint8_t* null = nullptr;   ///< [column][capacity]
  uint32_t capacity = 0;
  uint32_t columns = 0;
  const uint32_t* places = nullptr;  ///< the register of each column
  const uint32_t* highs = nullptr;   ///< index of each wide column in `high`
};

/// Why a launch stopped. `stop` without a reason: the host has cancelled it.
enum StopReason : uint32_t {
  kGrow = 1,
  kOutputFull = 2,
  kFailed = 4,
  kEnough = 8,
  kManyFed = 16,  ///< groups have had as many rows as their counters and sums can hold before they are carried over
};
/// Rows that groups are fed in a launch before it stops: what is under way then must not make it 2^32.
inline constexpr unsigned long long kMostFed = 1ull << 31;

/// Counters that blocks and host share, each on a cache line of its own.
struct Control {
  alignas(128) uint32_t stop;  ///< nonzero: producers start no more tiles
  uint32_t reasons;            ///< bits of StopReason
  uint32_t error_claimed;      ///< the first failing row wins
  uint32_t error_address, error_code, error_tablet, error_row;
  alignas(128) uint32_t groups;          ///< ordinals given out; may exceed max_groups by those that were refused
  unsigned long long fed;                ///< rows that went to groups, where a row can go there more than once
  alignas(128) unsigned long long rows;  ///< of output, reserved
  unsigned long long rows_valid;   ///< ... of which the first so many are written (least base of a refused reservation)
  unsigned long long rows_wanted;  ///< largest reservation that was refused
};

// ---- Launch ---------------------------------------------------------------------------------------------------------

/// Byte offsets in dynamic shared memory.
struct Layout {
  uint32_t code = kNowhere;           ///< copy of the instructions; kNowhere: read from device memory
  uint32_t joins = 0;                 ///< JoinRecord[joins]
  uint32_t headers = 0;               ///< TileHeader[stages]
  uint32_t units = kNowhere;          ///< UnitHeader[stages], if the launch is a product
  uint32_t barriers = 0;              ///< full[stages], empty[stages]
  uint32_t warps = 0;                 ///< WarpState[warps]
  uint32_t marks = kNowhere;          ///< Mark[warps][marks]
  uint32_t warp_states = 0;           ///< Partial[warps][aggregates]
  uint32_t thread_states = kNowhere;  ///< ThreadState[aggregates][threads]
  uint32_t thread_counts = 0;         ///< uint32_t[aggregates][threads], if there are thread_states
  uint32_t masks = 0;                 ///< uint32_t[masks][threads]
  uint32_t queues = kNowhere;         ///< uint32_t[warps][kQueueEntries]: rows of the tablet, see RunQueues
  uint32_t wide = 0;                  ///< accumulator W: 16 bytes [16][threads]
  uint32_t ordinals = 0;              ///< uint32_t[16][threads]: the group of each row
  uint32_t private_slots =
      0;  ///< uint32_t[2 * private_groups]; direct: uint8_t[private_groups], 1 for groups that have a row
  uint32_t private_records = 0;                 ///< uint64_t[private_groups][record_words]; direct: none
  uint32_t private_seen = 0;                    ///< uint8_t[aggregates][private_groups]
  uint32_t private_begin = 0, private_end = 0;  ///< all of the above, cleared at the start
  uint32_t ring = 0;
  uint32_t stage_bytes = 0;
  uint32_t stages = 0;
  uint32_t bytes = 0;
};

/// Block b takes the tiles from here to where b + 1 begins.
TESSERA_HD uint32_t FirstTileOf(uint32_t block, uint32_t blocks, uint32_t tiles) {
  return static_cast<uint32_t>(uint64_t{tiles} * block / blocks);
}

struct Launch {
  const DeviceInstruction* code = nullptr;
  uint32_t code_length = 0;
  uint32_t slots = 0;  ///< SlotRecords, PredicateRecords, then ProbeRecords make a tablet's record
  const uint8_t* records = nullptr;
  uint32_t record_bytes = 0;
  bool record_staged = false;  ///< the record travels at the head of each stage
  bool two_passes = false;     ///< sinks are fed more than once a tile: a first pass reserves, a second applies
  uint32_t tablets = 0;
  const uint32_t* first_tile = nullptr;  ///< per tablet
  const uint32_t* tablet_rows = nullptr;
  uint32_t tiles = 0;
  uint32_t staged_count = 0;
  const StagedSlot* staged = nullptr;
  Layout layout;

  uint32_t* cursors = nullptr;  ///< per block and warp: the next tile that it has to apply
  Control* control = nullptr;
  uint8_t* scratch = nullptr;  ///< registers that shared memory has no room for
  uint64_t scratch_bytes = 0;  ///< per block

  uint32_t aggregates = 0;
  Partial* partials = nullptr;  ///< [block][aggregate], without keys
  const uint16_t* aggregate_ops = nullptr;

  uint32_t joins = 0;
  uint32_t mark_count = 0;
  Mark* marks = nullptr;  ///< nullptr: nothing is measured
  const JoinRecord* join_records = nullptr;

  // A product that is cut both ways: `tiles` counts units, each a tile and a part of join table `product`.
  uint32_t product = kNowhere;
  uint32_t part_rows = 0;  ///< of the join table, in a part
  uint32_t parts = 1;
  const uint32_t* units = nullptr;       ///< tile * parts + part, and kAllPairs; nullptr: all there are, in this order
  const uint32_t* unit_count = nullptr;  ///< how many; nullptr: `tiles`
  bool repeats = false;                  ///< a row can reach the sink more than once

  // Queues: where the program goes on with their rows, and the cursors that rows bring along: offsets in shared memory,
  // by row of the tile or by entry.
  uint32_t resume[kQueues] = {};
  uint32_t carried[kQueues] = {};  ///< how many
  uint32_t carried_from[kMaxCarried] = {};
  uint32_t carried_to[kQueues][kMaxCarried] = {};

  uint32_t build_keys =
      0;              ///< the first so many output columns are keys of a join table: no row with a NULL among them
  uint32_t keys = 0;  ///< of groups
  uint32_t key_places[kMaxGroupKeys + 1] = {};
  /// Groups that a block aggregates in shared memory, before it adds them to the table. Without `direct` a power of two
  /// (or 0): the groups with ordinals below it. With `direct` all there can be, or none.
  uint32_t private_groups = 0;
  /// The keys themselves give a group's number, below direct_groups. Without private groups `groups.states` and
  /// `touched` are arrays by that number, which EnterDirectGroups adds to the table behind the launch.
  bool direct = false;
  uint32_t direct_groups = 0;
  uint8_t* touched = nullptr;  ///< 1: the group has a row
  /// Copies of the two arrays, one behind the other, over which blocks are spread: additions to one address come one
  /// after the other.
  uint32_t direct_copies = 1;
  DirectKey direct_keys[kMaxDirectKeys] = {};
  GroupTable groups;
  const DeviceInstruction* folds = nullptr;  ///< per aggregate an instruction with its op, state and private_state

  Output output;
  unsigned long long enough = ~0ull;  ///< rows of output after which the launch may stop
  uint32_t* running = nullptr;        ///< dp: blocks that have not ended
  /// Up to so many neighbours among the listed units are run as one; a power of two up to 32. Where runs end depends on
  /// the list alone, so that a block that goes on later finds the same ones.
  uint32_t most_units = 1;
};
static_assert(sizeof(Launch) <= 4096, "kernel parameters");

}  // namespace tessera::kernels
