#include "tablet/schemes/scheme.h"

namespace tessera {

int ChildrenOf(Scheme scheme) {
  switch (scheme) {
    case Scheme::kNs:
    case Scheme::kNsv:
    case Scheme::kZstd:
      return 0;
    case Scheme::kFor:
    case Scheme::kDelta:
    case Scheme::kBitmap:
    case Scheme::kScale:
      return 1;
    case Scheme::kRle:
    case Scheme::kDict:
    case Scheme::kSep:
      return 2;
  }
  return 0;
}

const char* NameOf(Scheme scheme) {
  static constexpr const char* kNames[kSchemes] = {"NS",   "NSV",    "FOR", "DELTA", "RLE",
                                                   "DICT", "BITMAP", "SEP", "SCALE", "ZSTD"};
  return kNames[static_cast<int>(scheme)];
}

std::string SchemeTree::ToString() const {
  std::string out = NameOf(scheme);
  if (children.empty()) return out;
  if (children.size() == 1) return out + ", " + children[0].ToString();
  out += ", [";
  for (size_t i = 0; i < children.size(); ++i) {
    if (i > 0) out += " | ";
    const bool leaf = children[i].children.empty();
    out += leaf ? children[i].ToString() : "[" + children[i].ToString() + "]";
  }
  return out + "]";
}

}  // namespace tessera
