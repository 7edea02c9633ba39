"""``navigation_order``: the order in which the navigation has the pages, for lists of them."""
