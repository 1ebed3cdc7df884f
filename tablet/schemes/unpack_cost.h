// What unpacking costs: a table of nanoseconds on one machine, and how much faster or slower this one is. The planner
// ranks by the table alone, so that equal rows become equal files on every machine; machines differ far less in what one
// scheme costs beside another than in speed (bench/HISTORY.md, "Schemes on TPC-H's columns").
//
// Start at: NodeNanoseconds, UnpackNanoseconds. Any thread.
#pragma once

#include "tablet/schemes/packed_node.h"
#include "tablet/schemes/scheme.h"

namespace tessera {

/// Nanoseconds that a node takes on one core of the table's machine, without those below it. `values`: what it unpacks to;
/// `inner`: runs of kRle, different values of kDict and kBitmap, else of no matter; `width`: bytes of an unpacked value.
double NodeNanoseconds(Scheme scheme, double values, double inner, int width);

/// Of a whole tree that unpacks to values of `width` bytes.
double UnpackNanoseconds(const PackedTree& tree, int width);

/// Nanoseconds here for one of the table's machine. Measured when it is first asked, which takes half a millisecond.
double UnpackSpeed();

}  // namespace tessera
