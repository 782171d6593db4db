# find_package(pipec): the imported target pipec::pipec, from the prefix that this file is in
get_filename_component(pipec_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET pipec::pipec)
    add_library(pipec::pipec SHARED IMPORTED)
    set_target_properties(pipec::pipec PROPERTIES
        IMPORTED_LOCATION "${pipec_PREFIX}/lib/libpipec.so.1"
        IMPORTED_SONAME libpipec.so.1
        INTERFACE_INCLUDE_DIRECTORIES "${pipec_PREFIX}/include")
endif()
