// assert, as <assert.h> has it: each include looks again whether NDEBUG is defined, so there is no guard.
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : rl_assertion_failed(0, __LINE__))
#endif
