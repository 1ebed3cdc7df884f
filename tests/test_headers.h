// The headers of other people that most tests include; the Makefile compiles this as it does base/standard_headers.h. Programs
// of tests that need no GoogleTest are built where it is missing.
#pragma once

#if __has_include(<gtest/gtest.h>)
#include <gtest/gtest.h>
#endif

#include <filesystem>
#include <fstream>
#include <random>
#include <unordered_map>

#include "base/standard_headers.h"
