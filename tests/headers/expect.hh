/* SPDX-License-Identifier: GPL-2.0 */
/* What the programs in C++ of tests/languages check with */
#ifndef TESTS_EXPECT_HH
#define TESTS_EXPECT_HH

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <kdsm/kdsm.hpp>

#define EXPECT(condition) \
	((condition) ? (void)0 : \
	 (std::fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition), std::exit(1)))

/* The call throws an error with this number and text. */
template <typename Call>
static void fails(int error, std::string_view text, Call call)
{
	try {
		call();
	} catch (const kdsmxx::error &e) {
		if (e.code() != std::error_code(error, std::generic_category()) || e.what() != text)
			std::fprintf(stderr, "error %d: %s\n", e.code().value(), e.what());
		EXPECT(e.code() == std::error_code(error, std::generic_category()));
		EXPECT(e.what() == text);
		return;
	}
	EXPECT(!"the call failed");
}

#endif /* TESTS_EXPECT_HH */
